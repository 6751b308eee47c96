/** A file system of its own for the data of one node, which can be made full. Mounting it needs root on Linux. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, statfsSync } from 'node:fs'

/** The largest size of the file system, which is in memory. */
const bytesMax = 2 * 1024 ** 3

export class SmallDisk {
  readonly #folder: string

  /** Mounts an empty file system at the folder. */
  constructor(folder: string) {
    this.#folder = folder
    mkdirSync(folder, { recursive: true })
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytesMax}`, 'tmpfs', folder])
  }

  /** Leaves room for this many bytes more; further writes fail with ENOSPC. */
  limit(freeBytes: number): void {
    const { bsize, blocks, bfree } = statfsSync(this.#folder)
    this.#resize((blocks - bfree) * bsize + freeBytes)
  }

  /** Makes room again. */
  free(): void {
    this.#resize(bytesMax)
  }

  /** Call this when no process uses the folder. */
  unmount(): void {
    execFileSync('umount', [this.#folder])
  }

  #resize(bytes: number): void {
    execFileSync('mount', ['-o', `remount,size=${bytes}`, this.#folder])
  }
}
