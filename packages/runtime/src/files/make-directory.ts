import { chmodSync, mkdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

const ownerOnly = 0o700
const others = 0o077

/**
 * Creates a directory and its missing parents, readable by their owner only. Does not use `mkdirSync` with `recursive`,
 * which never returns below /proc, where the parent exists but no directory can be created.
 *
 * @throws the file system's error, which names the path that cannot be created
 */
export function makeDirectory(path: string): void {
  const status = statSync(path, { throwIfNoEntry: false })
  if (status?.isDirectory()) return
  const parent = dirname(resolve(path))
  if (status === undefined && parent !== resolve(path)) makeDirectory(parent)
  try {
    mkdirSync(path, { mode: ownerOnly })
  } catch (error) {
    // Another process may have created it in between.
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error
  }
}

/**
 * Takes the rights to a directory, if it exists, from everybody but its owner.
 * @throws the file system's error, when that is not permitted
 */
export function closeDirectory(path: string): void {
  const status = statSync(path, { throwIfNoEntry: false })
  if (status !== undefined && (status.mode & others) !== 0) chmodSync(path, ownerOnly)
}
