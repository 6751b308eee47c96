import { expect } from 'chai'
import type { IndexDefinition, IndexRow } from '@sectional/core'
import { indexId } from '@sectional/core'
import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import { MemoryStorage, RealClock, SeededRandom, StorageError, Turns } from '@sectional/runtime'
import { BuildQueue } from '../../src/indexes/build-queue.ts'
import { rowPages } from '../../src/indexes/row-reader.ts'
import { IndexStore } from '../../src/indexes/index-store.ts'
import type { Indexer } from '../../src/indexes/indexer.ts'
import { ShardIndexes } from '../../src/indexes/shard-indexes.ts'
import { batchBytes } from '../../src/indexes/unwritten-changes.ts'
import { context, edit, silentLog } from '../shard-world.ts'

const definition: IndexDefinition = { kind: 'test', map: 'x', reduce: null, options: {} }
const valueBytes = 100 * 1024
const indexer: Indexer = {
  versionOf: () => '1',
  map: async (_definition, documents) =>
    documents.map(({ id }) => ({ rows: [{ key: id, value: new Uint8Array(valueBytes) }] })),
  groupOf: key => key,
  reduce: async () => [],
  rereduce: async () => [],
  encodeGroup: (_definition, _row, _level, value) => value,
}
const ids = Array.from({ length: 240 }, (_, number) => String(number).padStart(3, '0'))

describe('rows with large values', () => {
  let replica: MemoryShardReplica
  let indexes: ShardIndexes
  let store: IndexStore
  /** Bytes of the values of each batch that was written to the store. */
  const batches: number[] = []
  /** The number of batches until the one that fails. */
  let failsIn = Number.POSITIVE_INFINITY

  before(async () => {
    replica = new MemoryShardReplica({ history: 'one' })
    await replica.updateDocuments({ edits: ids.map(id => edit(id, null, {})), revsLimit: 10 }, context)
    const clock = new RealClock()
    store = await IndexStore.open({ storage: new MemoryStorage(), log: silentLog, random: new SeededRandom(1), clock })
    const write = store.store.write.bind(store.store)
    store.store.write = fill => {
      if (--failsIn === 0) return Promise.reject(new StorageError('io', 'the disk fails'))
      batches.push(0)
      return write(batch => {
        const put = batch.put.bind(batch)
        batch.put = (key, value) => {
          batches[batches.length - 1]! += value.length
          put(key, value)
        }
        fill(batch)
      })
    }
    indexes = new ShardIndexes({
      owner: 'shard', database: 'db',
      store, replica, indexer, queue: new BuildQueue(clock), clock, turns: new Turns(clock),
    })
    await indexes.buildIndex({ definition, through: 'newest', waitMs: 20_000 }, context)
  })

  after(async () => {
    await indexes.close()
    await store.close()
  })

  const cases = {
    'all rows': { ranges: [{}] },
    'few rows': { ranges: [{}], limit: 30 },
    'all rows in descending order': { ranges: [{}], descending: true },
    'several ranges': {
      ranges: ids.map(key => ({ lower: { key, inclusive: true }, upper: { key, inclusive: true } })),
    },
  }
  for (const [name, read] of Object.entries(cases)) {
    it(`are scanned in pages with few bytes: ${name}`, async () => {
      const found: string[] = []
      const request = { index: indexId(definition), through: 0, descending: false, ...read }
      for await (const page of indexes.scanIndex(request, context)) {
        const rows = page.filter((row): row is IndexRow => row.kind === 'row')
        expect(rows.length).to.be.at.most(Math.ceil(rowPages.pageBytes / valueBytes))
        found.push(...rows.map(({ id }) => id))
      }
      const { descending, limit } = { descending: false, limit: ids.length, ...read }
      expect(found).to.deep.equal((descending ? ids.toReversed() : ids).slice(0, limit))
    })
  }

  it('are scanned in smaller pages while many scans are open', async () => {
    const request = { index: indexId(definition), through: 0, descending: false, ranges: [{}] }
    const scans = Array.from({ length: 800 }, () => indexes.scanIndex(request, context))
    const rows: number[] = []
    for (const scan of scans) rows.push(((await scan.next()).value as readonly unknown[]).length - 1)
    expect(rows[0]).to.equal(Math.ceil(rowPages.pageBytes / valueBytes))
    expect(rows.slice(750)).to.deep.equal(Array.from({ length: 50 }, () => 1))
    for (const scan of scans) await scan.return(undefined)
    const again = indexes.scanIndex(request, context)
    expect(((await again.next()).value as readonly unknown[]).length - 1).to.equal(rows[0])
    await again.return(undefined)
  })

  it('are written in batches of few documents', async () => {
    expect(batches.length).to.be.above(10)
    const built = batches.length
    const edits = ids.map(id => edit(`${id} new`, null, {}))
    await replica.updateDocuments({ edits, revsLimit: 10 }, context)
    const { rowCount } = await indexes.buildIndex({ definition, through: 'newest', waitMs: 20_000 }, context)
    expect(rowCount).to.equal(2 * ids.length)
    expect(batches.length - built).to.be.above(10)
    expect(Math.max(...batches)).to.be.below(2 * batchBytes + valueBytes)
  })

  it('are all there after a batch in the middle of a page of changes could not be written', async () => {
    const { rowCount } = await indexes.buildIndex({ definition, through: 0, waitMs: 0 }, context)
    const edits = ids.map(id => edit(`${id} newer`, null, {}))
    await replica.updateDocuments({ edits, revsLimit: 10 }, context)
    const build = () => indexes.buildIndex({ definition, through: 'newest', waitMs: 20_000 }, context)
    const before = batches.length
    failsIn = 6
    const failure = await build().catch((error: unknown) => error)
    expect(failure).to.include({ name: 'ReplicaError', code: 'storage' })
    expect(batches.length - before).to.be.above(1)
    expect((await build()).rowCount).to.equal(rowCount + ids.length)
  })
})
