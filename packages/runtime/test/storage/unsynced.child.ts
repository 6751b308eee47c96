// storage-unsynced.test.ts runs this program: it writes numbered batches and prints the number of each resolved one
// until it is killed.
import { LevelStorage } from '../../src/storage/storage-level.ts'

const storage = new LevelStorage({ directory: process.argv[2] as string })
const store = await storage.open('indexes', { synced: false, writeBufferBytes: 64 * 1024 })
setTimeout(() => process.exit(1), 30_000)
for (let number = 0; ; number++) {
  await store.write(batch => batch.put(`k${String(number).padStart(6, '0')}`, Buffer.alloc(500, number)))
  process.stdout.write(`${number}\n`)
}
