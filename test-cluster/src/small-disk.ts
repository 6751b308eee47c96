/** A file system of its own for the data of one node, which can be made full. Mounting it needs root on Linux. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, statfsSync } from 'node:fs'

/** The largest size of the file system, which is in memory. */
const bytesMax = 2 * 1024 ** 3
const attemptsMax = 20
/** What processes may write between a look at the used space and the new limit; it grows with each attempt. */
const slackBytes = 64 * 1024

export class SmallDisk {
  readonly #folder: string

  /** Mounts an empty file system at the folder. */
  constructor(folder: string) {
    this.#folder = folder
    mkdirSync(folder, { recursive: true })
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytesMax}`, 'tmpfs', folder])
  }

  /**
   * Leaves room for this many bytes more; further writes fail with ENOSPC. A file system cannot become smaller than
   * what it holds, and processes may write meanwhile, so it is tried again with the space that is used then.
   */
  limit(freeBytes: number): void {
    for (let attempt = 1; ; attempt++) {
      const { bsize, blocks, bfree } = statfsSync(this.#folder)
      try {
        // A size of 0 would mean that there is no limit.
        return this.#resize(Math.max(bsize, (blocks - bfree) * bsize + freeBytes + (attempt - 1) * slackBytes))
      } catch (error) {
        if (attempt === attemptsMax) throw error
      }
    }
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
    execFileSync('mount', ['-o', `remount,size=${bytes}`, this.#folder], { stdio: ['ignore', 'ignore', 'pipe'] })
  }
}
