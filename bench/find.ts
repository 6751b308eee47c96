/**
 * Measures what Mango costs in one process, without HTTP and without a cluster: run
 * `node --conditions=sectional-source bench/find.ts [documents=20000]`. Each document has about 1 KB of JSON. Prints
 * the CPU microseconds of each document (this process and its children) for
 * - the first build of a JSON index and of a view in JavaScript with the same rows, on LevelDB;
 * - a scan of all documents of a replica on LevelDB with a selector of five clauses, through `find`, and the same
 *   predicate written in JavaScript, over documents that are parsed from bytes in memory.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  queryIndexDefinition, type CallContext, type ChangeReplica, type ChangeRow, type FindRequest, type FindRow,
  type IndexDefinition, revisionHash,
} from '@sectional/core'
import {
  defaultSandboxLimits, IsolateSandbox, LevelStorage, MemoryBlobStorage, MemoryLog, MemoryMachine, PrometheusMetrics,
  RealClock, RealRandom, Turns,
} from '@sectional/runtime'
import { indexersByKind, JavaScriptIndexer, QueryIndexer, ShardHost } from '@sectional/shard'
import { familyCpuUs } from './measured-process.ts'
import { order } from './view-documents.ts'
import { BuildQueue } from '../packages/shard/src/indexes/build-queue.ts'
import { IndexStore } from '../packages/shard/src/indexes/index-store.ts'
import { ShardIndexes } from '../packages/shard/src/indexes/shard-indexes.ts'

const count = Number(process.argv[2] ?? 20_000)
const rounds = 5
const pageRows = 128
const bulk = 500

const clock = new RealClock()
const turns = new Turns(clock)
const machine = new MemoryMachine(clock)
const log = new MemoryLog()
const call: CallContext = { timeoutMs: 600_000 }

const selector = {
  type: 'order', paid: true, 'customer.id': { $lt: 2500 }, number: { $gte: 100 },
  lines: { $elemMatch: { count: { $gt: 8 } } },
}

interface Order {
  readonly type: string
  readonly paid: boolean
  readonly customer: { readonly id: number }
  readonly number: number
  readonly lines: readonly { readonly count: number }[]
}

function matches({ type, paid, customer, number, lines }: Order): boolean {
  return type === 'order' && paid && customer.id < 2500 && number >= 100 && lines.some(line => line.count > 8)
}

const bodies = Array.from({ length: count }, (_, number) => {
  const { _id, ...members } = JSON.parse(order(number)) as Record<string, unknown>
  return Buffer.from(JSON.stringify(members))
})
const idOf = (number: number): string => `document-${String(number).padStart(8, '0')}`

/**
 * Runs some kinds of work in turn, so that other work of the machine disturbs all of them alike.
 *
 * @returns the CPU microseconds of each document (this process and its children), of the fastest round of each kind
 */
async function measured(kinds: Readonly<Record<string, () => unknown>>): Promise<readonly number[]> {
  const least = new Map<string, number>()
  for (let round = 0; round < rounds; round++) {
    for (const [name, work] of Object.entries(kinds)) {
      const before = familyCpuUs(process.pid)
      const startedAt = performance.now()
      await work()
      const cpuUs = (familyCpuUs(process.pid) - before) / count
      const elapsedUs = (performance.now() - startedAt) * 1000 / count
      least.set(name, Math.min(least.get(name) ?? Infinity, cpuUs))
      console.log(`  ${name}: CPU ${cpuUs.toFixed(2)} us, elapsed ${elapsedUs.toFixed(2)} us`)
    }
  }
  return [...least.values()]
}

/** Lists changes of new documents. */
const changes = {
  async waitForChange() { return { history: 'one', sequence: count } },
  async* scanChanges({ since }: { readonly since: number }) {
    for (let at = since; at < count; at += pageRows) {
      yield Array.from({ length: Math.min(pageRows, count - at) }, (_, offset): ChangeRow => {
        const number = at + offset
        const leaves = [{ revision: '1-0123456789abcdef0123456789abcdef', deleted: false }]
        return { sequence: number + 1, id: idOf(number), leaves, body: bodies[number]! }
      })
    }
  },
}

async function measureBuilds(directory: string): Promise<void> {
  const sandbox = new IsolateSandbox({
    clock, log, metrics: new PrometheusMetrics(), limits: { ...defaultSandboxLimits, childrenMax: 2 },
  })
  const indexer = indexersByKind({
    javascript: new JavaScriptIndexer({ sandbox, database: 'bench', turns, clock }),
    query: new QueryIndexer({ turns, clock, machine }),
  })
  let number = 0
  const build = (definition: IndexDefinition) => async (): Promise<void> => {
    const storage = new LevelStorage({ directory: join(directory, `build-${number++}`) })
    const store = await IndexStore.open({ storage, log, random: new RealRandom(), clock })
    const indexes = new ShardIndexes({
      owner: 'bench', database: 'bench',
      store, replica: changes as unknown as ChangeReplica, queue: new BuildQueue(clock), clock, turns,
      indexer,
    })
    await indexes.buildIndex({ definition, through: 'newest', waitMs: call.timeoutMs }, call)
    await indexes.close()
    await store.close()
  }
  const view: IndexDefinition = {
    kind: 'javascript', reduce: '_count', options: {},
    map: `function (doc) {
      if (doc.type !== undefined && doc.number !== undefined) emit([doc.type, doc.number], null)
    }`,
  }
  const [viewUs, indexUs] = await measured({
    'build of a view': build(view),
    'build of a JSON index': build(queryIndexDefinition({ fields: ['type', 'number'], partitioned: false })),
  })
  console.log(`A JSON index is built ${(viewUs! / indexUs!).toFixed(2)} times as fast as the view; the target is 2.`)
  sandbox.close()
}

async function measureScan(directory: string): Promise<void> {
  const host = await ShardHost.open({
    storage: new LevelStorage({ directory: join(directory, 'documents') }), blobs: new MemoryBlobStorage(), clock,
    random: new RealRandom(), metrics: new PrometheusMetrics(), log, machine, turns,
  }, { indexerOf: () => new QueryIndexer({ turns, clock, machine }) })
  const shard = { incarnation: 'bench', range: { begin: 0, end: 0xffffffff } }
  const replica = await host.create(shard)
  for (let from = 0; from < count; from += bulk) {
    const edits = bodies.slice(from, from + bulk).map((body, at) => {
      const first = { parent: null, deleted: false, body }
      return { id: idOf(from + at), ...first, revisionHash: revisionHash(first) }
    })
    await replica.updateDocuments({ edits, revsLimit: 1000 }, call)
  }
  const indexes = await host.indexes(shard, false)
  const find: FindRequest = {
    selector: JSON.stringify(selector), source: { kind: 'documents' }, descending: false, documents: 'winner',
  }
  const parsed = (): number => bodies.filter(body => matches(JSON.parse(body.toString()) as Order)).length
  const scanned = async (): Promise<number> => {
    let found = 0
    for await (const page of indexes.find(find, call)) {
      found += page.filter(({ kind }: FindRow) => kind === 'found').length
    }
    return found
  }
  const expected = parsed()
  if (await scanned() !== expected) throw new Error(`the scan does not find ${expected} documents`)
  const read = async (): Promise<void> => {
    const request = { descending: false, body: true, leaves: false }
    for await (const page of replica.scanDocuments(request, call)) void page
  }
  const [, parsedUs, scanUs] = await measured({
    'documents as they are stored': read, 'predicate over parsed documents': parsed, 'scan with a selector': scanned,
  })
  const bytes = Math.round(bodies.reduce((sum, { length }) => sum + length, 0) / count)
  console.log(`A scan of documents of ${bytes} bytes, of which ${expected} match, reaches`,
    `${(parsedUs! / scanUs!).toFixed(2)} of the predicate; the target is 0.5.`)
  await host.close()
}

const directory = mkdtempSync(join(tmpdir(), 'find-'))
try {
  await measureScan(directory)
  await measureBuilds(directory)
} finally {
  rmSync(directory, { recursive: true })
}
