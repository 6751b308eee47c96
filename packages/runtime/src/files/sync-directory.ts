import { open } from 'node:fs/promises'

/** Makes the names in a directory durable. Without it, a power failure can lose a file whose content is synced. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}
