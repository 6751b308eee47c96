// storage-level.test.ts runs this program. While the file system accepts no bytes, a write fails, and so does the
// reopening of the store before the next one. Prints the codes of the errors, and what the store contains once writes
// work again.
import { execFileSync } from 'node:child_process'
import { LevelStorage } from '../../src/storage/storage-level.ts'
import { StorageError } from '../../src/storage/storage.ts'

const storage = new LevelStorage({ directory: process.argv[2] as string })
const store = await storage.open('shards')
setTimeout(() => process.exit(1), 30_000).unref()

function limitFiles(limit: string): void {
  execFileSync('prlimit', ['--pid', String(process.pid), `--fsize=${limit}:unlimited`])
}

async function outcome(work: () => unknown): Promise<string> {
  try {
    await work()
    return 'done'
  } catch (error) {
    return error instanceof StorageError ? error.code : String(error)
  }
}

const write = (key: string): Promise<string> => outcome(() => store.write(batch => batch.put(key, Buffer.from('x'))))
const outcomes = [await write('before')]
limitFiles('0')
outcomes.push(await write('refused'), await write('refused again'), await outcome(() => store.getSync('before')))
limitFiles('unlimited')
outcomes.push(await write('after'))
const kept = ['before', 'after'].filter(key => store.getSync(key) !== undefined)
await store.close()
process.stdout.write(JSON.stringify({ outcomes, kept }))
