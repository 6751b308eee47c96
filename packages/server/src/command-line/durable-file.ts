/** Small files that must survive a crash whole: old content or new, never half. */
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Only the owner may read and write: these files hold secrets. */
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
  const folder = await open(dirname(path), 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
