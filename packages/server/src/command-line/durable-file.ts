/** Writes small files atomically and durably: after a crash they have either the old or the new content. */
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { syncDirectory } from '@sectional/runtime'

/** Only the owner may read and write these files, because they contain secrets. */
const privateMode = 0o600

export async function writeDurably(path: string, text: string): Promise<void> {
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
