// Runs under a limit of the file size (see storage-level.test.ts), so that a large batch is cut off within the log.
import { LevelStorage } from '../../src/storage/storage-level.ts'

const storage = new LevelStorage({ directory: process.argv[2] as string })
const bufferBytes = Number(process.argv[3])
let store = await storage.open('documents', { writeBufferBytes: bufferBytes })
const acknowledged: string[] = []
const failures: string[] = []

async function put(key: string, bytes: number): Promise<void> {
  try {
    await store.write(batch => batch.put(key, Buffer.alloc(bytes, key)))
    acknowledged.push(key)
  } catch (error) {
    failures.push((error as { code: string }).code)
  }
}

for (const round of [1, 2, 3]) {
  for (let index = 0; index < 10; index++) await put(`before-${round}-${index}`, 1000)
  await Promise.all([put(`large-${round}`, 40 * bufferBytes), put(`with-large-${round}`, 1)])
  for (let index = 0; index < 10; index++) await put(`after-${round}-${index}`, 1000)
}
await store.close()
store = await storage.open('documents', { writeBufferBytes: bufferBytes })
const lost = acknowledged.filter(key => store.getSync(key) === undefined)
await store.close()
process.stdout.write(JSON.stringify({ acknowledged: acknowledged.length, failures, lost }))
