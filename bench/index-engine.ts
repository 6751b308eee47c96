/**
 * Measures the engine of indexes on LevelDB without documents and without user functions, for
 * docs/decisions/0017-index-engine.md: run `node --conditions=sectional-source bench/index-engine.ts
 * [rows=10000,100000]`.
 * Each document has one row with a key `[one of 20 texts, a number]` and a value of 40 bytes; the reduction is a sum.
 * Prints CPU microseconds (all threads) per document for a first build and for changes of random documents, the bytes
 * of a row on disk, and CPU microseconds of queries.
 */
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ChangeReplica, type ChangeRow, indexId, SortKeyEncoder } from '@sectional/core'
import { LevelStorage, RealRandom, RealClock, Turns } from '@sectional/runtime'
import { BuildQueue } from '../packages/shard/src/indexes/build-queue.ts'
import { IndexStore } from '../packages/shard/src/indexes/index-store.ts'
import type { Indexer } from '../packages/shard/src/indexes/indexer.ts'
import { ShardIndexes } from '../packages/shard/src/indexes/shard-indexes.ts'

const sizes = (process.argv[2] ?? '10000,100000').split(',').map(Number)
const context = { timeoutMs: 600_000 }
const definition = { kind: 'bench', map: '', reduce: '_sum', options: {} }
const index = indexId(definition)
const encoder = new SortKeyEncoder()
const groups = Array.from({ length: 20 }, (_, at) => `group ${String.fromCharCode(97 + at)}`)
const changedDocuments = 12_800
const queryRounds = 300

let state = 1
function random(below: number): number {
  state = Math.imul(state, 1664525) + 1013904223 >>> 0
  return Math.floor(state / 2 ** 32 * below)
}

const groupPrefixes = groups.map(group => encoder.encode([group]).slice(0, -1))
const sum = (values: readonly Uint8Array[]): Uint8Array => {
  const total = Buffer.allocUnsafe(8)
  total.writeDoubleBE(values.reduce((all, value) => all + (value as Buffer).readDoubleBE(0), 0))
  return total
}

const indexer: Indexer = {
  versionOf: () => '1',
  map: async (_definition, documents) => documents.map(() => {
    const value = Buffer.alloc(40, ' ')
    value.writeDoubleBE(random(1000))
    return { rows: [{ key: encoder.encode([groups[random(20)], random(1e9)]), value }] }
  }),
  groupOf: (key, level) => level > 1 ? key : groupPrefixes.find(prefix => key.startsWith(prefix)) ?? key,
  reduce: async (_definition, lists) => lists.map(rows => sum(rows.map(({ value }) => value))),
  rereduce: async (_definition, lists) => lists.map(sum),
  encodeGroup: (_definition, _row, _level, value) => value,
}

/** Lists changes of documents without bodies. */
class Changes {
  newest = 0
  idOf: (sequence: number) => string = sequence => `document-${String(sequence).padStart(8, '0')}`

  async waitForChange() { return { history: 'one', sequence: this.newest } }

  async* scanChanges({ since }: { readonly since: number }) {
    for (let at = since; at < this.newest; at += 128) {
      yield Array.from({ length: Math.min(128, this.newest - at) }, (_, offset): ChangeRow => ({
        sequence: at + offset + 1, id: this.idOf(at + offset + 1), leaves: [{ revision: '1-a', deleted: false }],
      }))
    }
  }
}

/** Returns CPU microseconds per unit of work. */
async function cost(units: number, work: () => Promise<void>): Promise<string> {
  const before = process.cpuUsage()
  const begin = performance.now()
  await work()
  const { user, system } = process.cpuUsage(before)
  return `${((user + system) / units).toFixed(1)} (${((performance.now() - begin) * 1000 / units).toFixed(1)} elapsed)`
}

async function measure(count: number): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'index-engine-'))
  const clock = new RealClock()
  const log = { debug() {}, info() {}, warn() {}, error() {}, child: () => log }
  const storage = new LevelStorage({ directory })
  const store = await IndexStore.open({ storage, log, random: new RealRandom(), clock })
  const changes = new Changes()
  const indexes = new ShardIndexes({
    owner: 'bench', database: 'bench',
    store, replica: changes as unknown as ChangeReplica, indexer, queue: new BuildQueue(clock), clock,
    turns: new Turns(clock),
  })
  const build = async (): Promise<void> => {
    await indexes.buildIndex({ definition, through: 'newest', waitMs: 600_000 }, context)
  }
  changes.newest = count
  const report: Record<string, string> = {}
  report['first build, a document'] = await cost(count, build)
  const { rss, heapUsed, external } = process.memoryUsage()
  report['resident MiB, of it the heap and buffers'] =
    [rss, heapUsed + external].map(size => Math.round(size / 2 ** 20)).join(', ')
  await store.store.compact({ gte: '\0', lt: '\u{10ffff}' })
  const folder = join(directory, 'indexes')
  const bytes = readdirSync(folder).reduce((all, name) => all + statSync(join(folder, name)).size, 0)
  report['disk bytes of a row'] = (bytes / count).toFixed(1)
  changes.idOf = () => `document-${String(1 + random(count)).padStart(8, '0')}`
  changes.newest += Math.min(changedDocuments, count / 5)
  report['changed documents, each'] = await cost(changes.newest - count, build)
  const everything = { index, through: 0, ranges: [{}], descending: false }
  const drain = async (pages: AsyncIterable<readonly unknown[]>): Promise<void> => {
    for await (const _page of pages);
  }
  const randomRange = () => {
    const [lower, upper] = [random(20), random(20)].sort((a, b) => a - b).map(group =>
      ({ key: encoder.encode([groups[group]!, random(1e9)]), inclusive: true }))
    return { lower: lower!, upper: upper! }
  }
  const query = (name: string, run: () => AsyncIterable<readonly unknown[]>): Promise<void> =>
    cost(queryRounds, async () => {
      for (let round = 0; round < queryRounds; round++) await drain(run())
    }).then(result => { report[name] = result })
  await query('reduction of all', () => indexes.reduceIndex({ ...everything, groupLevel: 0 }, context))
  await query('reduction of a random range', () =>
    indexes.reduceIndex({ ...everything, ranges: [randomRange()], groupLevel: 0 }, context))
  await query('20 groups', () => indexes.reduceIndex({ ...everything, groupLevel: 1 }, context))
  await query('one row at a random position (skip)', () =>
    indexes.scanIndex({ ...everything, skip: random(count), limit: 1 }, context))
  await query('100 rows of a random range', () =>
    indexes.scanIndex({ ...everything, ranges: [randomRange()], limit: 100 }, context))
  console.log(count, report)
  await indexes.close()
  await store.close()
  rmSync(directory, { recursive: true })
}

for (const size of sizes) await measure(size)
