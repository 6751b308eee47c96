import { expect } from 'chai'
import type { IndexDefinition, IndexHead, IndexRow, RowRange } from '@sectional/core'
import { indexId } from '@sectional/core'
import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import { MemoryStorage, RealClock, SeededRandom, Turns } from '@sectional/runtime'
import { BuildQueue } from '../../src/indexes/build-queue.ts'
import { IndexStore } from '../../src/indexes/index-store.ts'
import type { Indexer } from '../../src/indexes/indexer.ts'
import { ShardIndexes } from '../../src/indexes/shard-indexes.ts'
import { context, edit, silentLog } from '../shard-world.ts'

const definition: IndexDefinition = { kind: 'test', map: 'x', reduce: null, options: {} }
const indexer: Indexer = {
  versionOf: () => '1',
  map: async (_definition, documents) => documents.map(({ id }) => ({ rows: [{ key: id, value: Buffer.from(id) }] })),
  groupOf: key => key,
  reduce: async () => [],
  rereduce: async () => [],
  encodeGroup: (_definition, _row, _level, value) => value,
}

const documents = 3000
const keyOf = (number: number): string => String(number).padStart(6, '0')
const only = (key: string): RowRange => ({ lower: { key, inclusive: true }, upper: { key, inclusive: true } })

describe('a scan of thousands of ranges', () => {
  let indexes: ShardIndexes
  let store: IndexStore
  let iterators: number

  before(async () => {
    const replica = new MemoryShardReplica({ history: 'one' })
    const edits = Array.from({ length: documents }, (_, number) => edit(keyOf(number), null, {}))
    await replica.updateDocuments({ edits, revsLimit: 10 }, context)
    const clock = new RealClock()
    store = await IndexStore.open({ storage: new MemoryStorage(), log: silentLog, random: new SeededRandom(1), clock })
    indexes = new ShardIndexes({
      owner: 'shard', database: 'db',
      store, replica, newest: () => undefined, indexer, queue: new BuildQueue(clock), clock,
      turns: new Turns(clock),
    })
    await indexes.buildIndex({ definition, through: 'newest', waitMs: 20_000 }, context)
    const open = store.store.snapshot.bind(store.store)
    store.store.snapshot = () => {
      const snapshot = open()
      const iterate = snapshot.iterate.bind(snapshot)
      snapshot.iterate = (...parameters) => { iterators++; return iterate(...parameters) }
      return snapshot
    }
  })

  after(async () => {
    await indexes.close()
    await store.close()
  })

  async function scan(ranges: readonly RowRange[], descending: boolean, limit?: number): Promise<{
    readonly pages: number
    readonly rows: readonly (readonly [range: number, key: string])[]
  }> {
    iterators = 0
    let pages = 0
    const found: (IndexHead | IndexRow)[] = []
    const request = { index: indexId(definition), through: 0, ranges, descending, ...(limit && { limit }) }
    for await (const page of indexes.scanIndex(request, context)) {
      pages++
      expect(page.length).to.be.within(1, 400)
      found.push(...page)
    }
    expect(found[0]!.kind).to.equal('head')
    return { pages, rows: found.slice(1).map(row => [(row as IndexRow).range, (row as IndexRow).key]) }
  }

  it('finds the rows of each range with few iterators and full pages', async () => {
    const keys = Array.from({ length: 2 * documents }, (_, number) => keyOf(number))
    const expected = keys.slice(0, documents).map((key, range) => [range, key])
    const ascending = await scan(keys.map(only), false)
    expect(ascending.rows).to.deep.equal(expected)
    expect(ascending.pages).to.be.below(documents / 32)
    expect(iterators).to.be.below(200)
    expect((await scan(keys.map(only), true)).rows).to.deep.equal(expected)
    expect((await scan(keys.map(only), false, 1000)).rows).to.deep.equal(expected.slice(0, 1000))
  })

  it('keeps the direction within ranges of several rows', async () => {
    const width = 20
    const ranges = Array.from({ length: documents / width }, (_, at): RowRange => ({
      lower: { key: keyOf(at * width), inclusive: true }, upper: { key: keyOf((at + 1) * width), inclusive: false },
    }))
    const rowsOf = (at: number): readonly (readonly [number, string])[] =>
      Array.from({ length: width }, (_, row) => [at, keyOf(at * width + row)])
    expect((await scan(ranges, false)).rows).to.deep.equal(ranges.flatMap((_, at) => rowsOf(at)))
    expect((await scan(ranges, true)).rows).to.deep.equal(ranges.flatMap((_, at) => rowsOf(at).toReversed()))
  })

  it('finds nothing in ranges without rows, and sends the head once', async () => {
    const { pages, rows } = await scan(Array.from({ length: 5000 }, (_, at) => only(`none${at}`)), false)
    expect([pages, rows.length]).to.deep.equal([1, 0])
  })
})
