/** Writes small files atomically and durably: after a crash they have either the old or the new content. */
import { open, realpath, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { syncDirectory } from '@sectional/runtime'

/** Only the owner may read and write these files, because they contain secrets. */
const privateMode = 0o600

/** A link stays one: the file to which it leads is replaced, so that the old text, which may have secrets, is gone. */
export async function writeDurably(named: string, text: string): Promise<void> {
  const path = await realPath(named)
  const temporary = `${path}.new`
  await rm(temporary, { force: true })
  const file = await open(temporary, 'wx', privateMode)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(temporary, path)
  await syncDirectory(dirname(path))
}

async function realPath(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return path
  }
}
