// storage-level.test.ts runs this program. The file system cuts off a large batch or a clear within the log of a store.
// Prints which of the writes are lost that were acknowledged before and afterwards.
import { execFileSync } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { LevelStorage } from '../../src/storage/storage-level.ts'

const [, , directory = '', failing, writesAfter] = process.argv
const storage = new LevelStorage({ directory })
let store = await storage.open('documents')
setTimeout(() => process.exit(1), 30_000).unref()

function limitFiles(limit: string): void {
  execFileSync('prlimit', ['--pid', String(process.pid), `--fsize=${limit}:unlimited`])
}

const range = { gte: 'entry/', lt: 'entry0' }
await store.write(batch => {
  for (let index = 0; index < 1000; index++) batch.put(`entry/${String(index).padStart(100, '0')}`, Buffer.alloc(20))
})
const acknowledged = ['before']
await store.write(batch => batch.put('before', Buffer.of(1)))
const folder = join(directory, 'documents')
const log = readdirSync(folder).find(name => name.endsWith('.log')) as string
limitFiles(String(statSync(join(folder, log)).size + 10_000))
const failed = failing === 'clear' ? store.clear(range) : store.write(batch => batch.put('large', Buffer.alloc(40_000)))
const outcome = await failed.then(() => 'done', (error: { code: string }) => error.code)
const { failures } = store
limitFiles('unlimited')
for (let index = 0; index < Number(writesAfter); index++) {
  await store.write(batch => batch.put(`after ${index}`, Buffer.of(1)))
  acknowledged.push(`after ${index}`)
}
await store.close()
store = await storage.open('documents', { onDamage: 'report' })
const { damage } = store
const lost = acknowledged.filter(key => store.getSync(key) === undefined)
await store.clear(range)
const left = (await store.iterate(range).next(10)).length
await store.close()
process.stdout.write(JSON.stringify({ outcome, failures, damage, lost, left }))
