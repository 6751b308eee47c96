/**
 * Measures queries of two independent equalities with an index for each, on one shard on LevelDB, without HTTP: run
 * `node --conditions=sectional-source bench/find-intersection.ts [documents=100000]`. Prints the least CPU milliseconds
 * of a query that reads the documents of all rows of one index, and of one that looks the rows up in the other index.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  indexId, indexRanges, onlyKey, parseSelector, queryIndexDefinition, revisionHash, SortKeyEncoder, type CallContext,
  type FindSource, type IndexReplica,
} from '@sectional/core'
import {
  LevelStorage, MemoryBlobStorage, MemoryLog, MemoryMachine, PrometheusMetrics, RealClock, RealRandom, Turns,
} from '@sectional/runtime'
import { QueryIndexer, ShardHost } from '@sectional/shard'
import { order } from './view-documents.ts'

const count = Number(process.argv[2] ?? 100_000)
const rounds = 12
const bulk = 500
const call: CallContext = { timeoutMs: 600_000 }
const encoder = new SortKeyEncoder('root')
const selector = { region: 7, channel: 11 }
const fields = ['region', 'channel'] as const

/** `region` has 50 values and `channel` 80, which do not depend on each other. */
function body(number: number): Buffer {
  const { _id, ...members } = JSON.parse(order(number)) as Record<string, unknown>
  const hashed = Math.imul(number, 2_654_435_761) >>> 8
  return Buffer.from(JSON.stringify({ ...members, region: number % 50, channel: hashed % 80 }))
}

function scanOf(field: string): Omit<Parameters<typeof indexRanges>[0], 'descending'> {
  return { selector: parseSelector(selector), fields: [{ name: field }], partition: null }
}

function definitionOf(field: string): ReturnType<typeof queryIndexDefinition> {
  return queryIndexDefinition({ fields: [field], partitioned: false })
}

/** @param second the field of the index in which the rows are looked up; absent: they are not */
function sourceOf(first: string, second?: string): FindSource {
  return {
    kind: 'index', index: indexId(definitionOf(first)), through: 'newest',
    ranges: indexRanges({ ...scanOf(first), descending: false }, encoder),
    ...(second !== undefined && {
      within: { index: indexId(definitionOf(second)), key: onlyKey(scanOf(second), encoder)! },
    }),
  }
}

async function measure(indexes: IndexReplica, what: string, source: FindSource): Promise<void> {
  let least = Infinity
  let sums = { keys: 0, documents: 0, matches: 0 }
  for (let round = 0; round < rounds; round++) {
    sums = { keys: 0, documents: 0, matches: 0 }
    const before = process.cpuUsage()
    const request = { selector: JSON.stringify(selector), source, descending: false, documents: 'winner' as const }
    for await (const page of indexes.find(request, call)) {
      for (const row of page) {
        if (row.kind !== 'progress') continue
        sums.keys += row.keysExamined
        sums.documents += row.documentsExamined
        sums.matches += row.matches
      }
    }
    const { user, system } = process.cpuUsage(before)
    least = Math.min(least, (user + system) / 1000)
  }
  const { keys, documents, matches } = sums
  console.log(`${what}: ${least.toFixed(1)} ms, ${keys} rows, ${documents} documents, ${matches} matches`)
}

async function run(directory: string): Promise<void> {
  const clock = new RealClock()
  const turns = new Turns(clock)
  const machine = new MemoryMachine(clock)
  const host = await ShardHost.open({
    storage: new LevelStorage({ directory }), blobs: new MemoryBlobStorage(), clock, random: new RealRandom(),
    metrics: new PrometheusMetrics(), log: new MemoryLog(), machine, turns,
  }, { indexerOf: () => new QueryIndexer({ turns, clock, machine }) })
  const shard = { incarnation: 'bench', range: { begin: 0, end: 0xffffffff } }
  const replica = await host.create(shard)
  for (let from = 0; from < count; from += bulk) {
    const edits = Array.from({ length: Math.min(bulk, count - from) }, (_, at) => {
      const first: { parent: null; deleted: boolean; body: Buffer } =
        { parent: null, deleted: false, body: body(from + at) }
      return { id: `document-${String(from + at).padStart(8, '0')}`, ...first, revisionHash: revisionHash(first) }
    })
    await replica.updateDocuments({ edits, revsLimit: 1000 }, call)
  }
  const indexes = await host.indexes(shard, true)
  for (const field of fields) {
    await indexes.buildIndex({ definition: definitionOf(field), through: 'newest', waitMs: call.timeoutMs }, call)
  }
  for (const [first, second] of [fields, fields.toReversed()] as [string, string][]) {
    await measure(indexes, `${first}, documents of all rows`, sourceOf(first))
    await measure(indexes, `${first}, rows looked up in ${second}`, sourceOf(first, second))
  }
  await host.close()
}

const directory = mkdtempSync(join(tmpdir(), 'find-intersection-'))
try {
  await run(directory)
} finally {
  rmSync(directory, { recursive: true })
}
