/** Real files of one folder, whose writes can be ended or refused at each step, also by a power failure. */
import fs, { cpSync, lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import promises, { type FileHandle } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'

/** What happens at a step: the process is killed there, or the operation fails once. */
export type Failure = 'kill' | 'error'

/**
 * What is left of the files. `kill`: all that was written. After a power failure only what is synced is certain.
 * `lost`: of all else, nothing has reached the disk. `reordered`: names have, and contents have not.
 */
export const outcomes = ['kill', 'lost', 'reordered'] as const
export type Outcome = typeof outcomes[number]

const original = { rm: promises.rm, open: promises.open, rename: promises.rename, mkdirSync: fs.mkdirSync }

export class FailingDisk {
  readonly #root: string
  #steps = 0
  #failsAt = Infinity
  #failure: Failure = 'kill'
  #isKilled = false
  /** Synced contents of files, by their inodes. */
  readonly #contents = new Map<number, Buffer>()
  /** Synced names of each directory, with their inodes. */
  readonly #names = new Map<string, ReadonlyMap<string, number>>()

  /** The present files are durable. Replaces functions of `node:fs` until `restore`. */
  constructor(root: string) {
    this.#root = root
    this.#settle(root)
    const step = (path: unknown, ends?: () => void): void => { if (this.#isOurs(path)) this.#step(ends) }
    Object.assign(promises, {
      rm: async (...args: Parameters<typeof original.rm>) => { step(args[0]); return original.rm(...args) },
      rename: async (...args: Parameters<typeof original.rename>) => { step(args[0]); return original.rename(...args) },
      open: async (...args: Parameters<typeof original.open>) => {
        step(args[0])
        const handle = await original.open(...args)
        return this.#isOurs(args[0]) ? this.#watch(handle, String(args[0]), args[1] === 'wx') : handle
      },
    })
    fs.mkdirSync = ((...args: Parameters<typeof original.mkdirSync>) => {
      step(args[0])
      return original.mkdirSync(...args)
    }) as typeof fs.mkdirSync
    syncBuiltinESMExports()
  }

  /** The steps since the start of the process. */
  get steps(): number {
    return this.#steps
  }

  /** @param at number of the step, from 1 */
  failAt(at: number, failure: Failure): void {
    this.#failsAt = at
    this.#failure = failure
  }

  /** Starts the process again. What is not synced stays so. */
  restart(): void {
    this.#steps = 0
    this.#failsAt = Infinity
    this.#isKilled = false
  }

  restore(): void {
    Object.assign(promises, { rm: original.rm, rename: original.rename, open: original.open })
    fs.mkdirSync = original.mkdirSync
    syncBuiltinESMExports()
  }

  /** Writes what is left of the files to another folder, which must not exist. */
  leave(outcome: Outcome, target: string): void {
    if (outcome === 'kill') cpSync(this.#root, target, { recursive: true })
    else this.#leave(outcome, this.#root, target)
  }

  #leave(outcome: Outcome, directory: string, target: string): void {
    original.mkdirSync(target)
    const names = outcome === 'lost' ? this.#names.get(directory) ?? new Map<string, number>() : namesIn(directory)
    for (const [name, inode] of names) {
      const path = join(directory, name)
      const isDirectory = lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true
      if (isDirectory) this.#leave(outcome, path, join(target, name))
      else writeFileSync(join(target, name), this.#contents.get(inode) ?? '')
    }
  }

  #settle(directory: string): void {
    const names = namesIn(directory)
    this.#names.set(directory, names)
    for (const [name, inode] of names) {
      const path = join(directory, name)
      if (lstatSync(path).isDirectory()) this.#settle(path)
      else this.#contents.set(inode, readFileSync(path))
    }
  }

  #isOurs(path: unknown): boolean {
    return typeof path === 'string' && (path === this.#root || path.startsWith(`${this.#root}/`))
  }

  #step(ends: () => void = () => {}): void {
    if (this.#isKilled) throw new Error('the process was killed')
    this.#steps++
    if (this.#steps !== this.#failsAt) return
    ends()
    if (this.#failure === 'error') throw Object.assign(new Error('i/o error'), { code: 'EIO' })
    this.#isKilled = true
    throw new Error('the process is killed')
  }

  #watch(handle: FileHandle, path: string, isNew: boolean): FileHandle {
    const inode = lstatSync(path).ino
    if (isNew) this.#contents.delete(inode)
    const isDirectory = lstatSync(path).isDirectory()
    const writeFile = handle.writeFile.bind(handle)
    handle.writeFile = async data => {
      this.#step(() => { fs.writeSync(handle.fd, String(data).slice(0, String(data).length / 2)) })
      await writeFile(data)
    }
    // The disk of the machine need not be synced: what counts as durable is known here.
    handle.sync = async () => {
      this.#step()
      if (isDirectory) this.#names.set(path, namesIn(path))
      else this.#contents.set(inode, readFileSync(path))
    }
    return handle
  }
}

function namesIn(directory: string): ReadonlyMap<string, number> {
  return new Map(readdirSync(directory).map(name => [name, lstatSync(join(directory, name)).ino]))
}
