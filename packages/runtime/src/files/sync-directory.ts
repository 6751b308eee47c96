import { open } from 'node:fs/promises'

/** Makes the names in a directory durable: a synced file whose name is not can be lost with the power. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}
