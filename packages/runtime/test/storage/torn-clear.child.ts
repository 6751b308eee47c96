// storage-level.test.ts runs this program. The file system cuts a clear off within the log of the store. Prints which of
// the writes are lost that were acknowledged afterwards, and how many keys are left when the range is cleared again.
import { execFileSync } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { LevelStorage } from '../../src/storage/storage-level.ts'

const directory = process.argv[2] as string
const storage = new LevelStorage({ directory })
let store = await storage.open('control', { watermarkMs: 0 })
setTimeout(() => process.exit(1), 30_000).unref()

function limitFiles(limit: string): void {
  execFileSync('prlimit', ['--pid', String(process.pid), `--fsize=${limit}:unlimited`])
}

const range = { gte: 'entry/', lt: 'entry0' }
await store.write(batch => {
  for (let index = 0; index < 1000; index++) batch.put(`entry/${String(index).padStart(100, '0')}`, Buffer.alloc(20))
})
const folder = join(directory, 'control')
const log = readdirSync(folder).find(name => name.endsWith('.log')) as string
limitFiles(String(statSync(join(folder, log)).size + 10_000))
const cleared = await store.clear(range).then(() => 'done', (error: { code: string }) => error.code)
const { failures } = store
limitFiles('unlimited')
const acknowledged = Array.from({ length: 20 }, (_, index) => `after ${index}`)
for (const key of acknowledged) await store.write(batch => batch.put(key, Buffer.from('x')))
await store.close()
store = await storage.open('control', { watermarkMs: 0, onDamage: 'report' })
const lost = acknowledged.filter(key => store.getSync(key) === undefined)
await store.clear(range)
const left = (await store.iterate(range).next(10)).length
await store.close()
process.stdout.write(JSON.stringify({ cleared, failures, lost, left }))
