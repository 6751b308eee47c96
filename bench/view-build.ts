/**
 * Measures the first build of the index of a view, from the changes of a replica to LevelDB, with the functions in
 * child processes: run `node --conditions=sectional-source bench/view-build.ts [documents=20000]`.
 * Each document has about 250 bytes of JSON and one row. Prints documents per second and CPU microseconds (this process
 * and its children) per document, for several reduce functions, and for functions in this process (`MemorySandbox`).
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ChangeReplica, ChangeRow, IndexDefinition } from '@sectional/core'
import {
  defaultSandboxLimits, IsolateSandbox, LevelStorage, MemoryLog, MemorySandbox, PrometheusMetrics, RealClock,
  RealRandom, type Sandbox, Turns,
} from '@sectional/runtime'
import { BuildQueue } from '../packages/shard/src/indexes/build-queue.ts'
import { IndexStore } from '../packages/shard/src/indexes/index-store.ts'
import { JavaScriptIndexer } from '../packages/shard/src/indexes/javascript/javascript-indexer.ts'
import { ShardIndexes } from '../packages/shard/src/indexes/shard-indexes.ts'

const count = Number(process.argv[2] ?? 20_000)
const pageRows = 128
const tickMs = 10

function bodyOf(sequence: number): Buffer {
  return Buffer.from(JSON.stringify({
    type: 'order', customer: `customer ${sequence % 500}`, date: [2026, sequence % 12 + 1, sequence % 28 + 1],
    total: sequence % 1000 / 10, note: 'x'.repeat(140),
  }))
}

/** Lists changes of new documents. */
const changes = {
  async waitForChange() { return { history: 'one', sequence: count } },
  async* scanChanges({ since }: { readonly since: number }) {
    for (let at = since; at < count; at += pageRows) {
      yield Array.from({ length: Math.min(pageRows, count - at) }, (_, offset): ChangeRow => {
        const sequence = at + offset + 1
        const leaves = [{ revision: '1-0123456789abcdef0123456789abcdef', deleted: false }]
        return { sequence, id: `document-${String(sequence).padStart(8, '0')}`, leaves, body: bodyOf(sequence) }
      })
    }
  },
}

/** Returns CPU milliseconds of the children of this process that run now. */
function childrenCpuMs(): number {
  let ticks = 0
  for (const pid of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
    try {
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ')
      if (Number(fields[1]) === process.pid) ticks += Number(fields[11]) + Number(fields[12])
    } catch {
      // The process has ended meanwhile.
    }
  }
  return ticks * tickMs
}

async function measure(name: string, definition: IndexDefinition, sandbox: Sandbox): Promise<void> {
  const clock = new RealClock()
  const turns = new Turns(clock)
  const directory = mkdtempSync(join(tmpdir(), 'view-build-'))
  const store = await IndexStore.open({
    storage: new LevelStorage({ directory }), log: new MemoryLog(), random: new RealRandom(), clock,
  })
  const indexes = new ShardIndexes({
    owner: 'bench', database: 'bench',
    store, replica: changes as unknown as ChangeReplica, queue: new BuildQueue(clock), clock, turns,
    indexer: new JavaScriptIndexer({ sandbox, database: 'bench', turns, clock }),
  })
  // The first call starts the child process.
  await sandbox.map({ database: 'bench', designDocument: '', modules: '{}', source: 'doc => {}' }, ['{}'])
  const before = process.cpuUsage()
  const childrenBefore = childrenCpuMs()
  const begin = performance.now()
  await indexes.buildIndex({ definition, through: 'newest', waitMs: 600_000 }, { timeoutMs: 600_000 })
  const elapsed = performance.now() - begin
  const { user, system } = process.cpuUsage(before)
  console.log(name.padEnd(36), `${Math.round(count / elapsed * 1000)} documents/s,`,
    `CPU us a document: ${((user + system) / count).toFixed(1)} here,`,
    `${((childrenCpuMs() - childrenBefore) * 1000 / count).toFixed(1)} in children`)
  await indexes.close()
  await store.close()
  rmSync(directory, { recursive: true })
}

const map = 'function (doc) { if (doc.type === "order") emit(doc.date, doc.total) }'
const customReduce = 'function (keys, values, rereduce) { return sum(values) }'
const isolates = new IsolateSandbox({
  clock: new RealClock(), log: new MemoryLog(), metrics: new PrometheusMetrics(),
  limits: { ...defaultSandboxLimits, childrenMax: 2 },
})
const plain = { kind: 'javascript', map, reduce: null, options: {} }
await measure('warm-up', plain, isolates)
for (const reduce of [null, '_sum', '_stats', customReduce]) {
  await measure(reduce ?? 'no reduce', { kind: 'javascript', map, reduce, options: {} }, isolates)
}
await measure('no reduce, without child processes', plain, new MemorySandbox())
isolates.close()
