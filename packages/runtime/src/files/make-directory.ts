import { mkdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

const ownerOnly = 0o700

/**
 * Makes a directory, and the parents that it lacks, readable by their owner only. `mkdirSync` with `recursive`
 * never returns below /proc, where directories cannot be made although their parent exists.
 *
 * @throws the file system's error, which names the path that cannot be made
 */
export function makeDirectory(path: string): void {
  const status = statSync(path, { throwIfNoEntry: false })
  if (status?.isDirectory()) return
  const parent = dirname(resolve(path))
  if (status === undefined && parent !== resolve(path)) makeDirectory(parent)
  try {
    mkdirSync(path, { mode: ownerOnly })
  } catch (error) {
    // Another process may have made it in between.
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error
  }
}
