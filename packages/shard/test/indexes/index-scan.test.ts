import { expect } from 'chai'
import type { IndexDefinition } from '@sectional/core'
import { indexId } from '@sectional/core'
import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import { MemoryStorage, RealClock, SeededRandom, Turns } from '@sectional/runtime'
import { BuildQueue } from '../../src/indexes/build-queue.ts'
import { IndexStore } from '../../src/indexes/index-store.ts'
import type { Indexer } from '../../src/indexes/indexer.ts'
import { ShardIndexes } from '../../src/indexes/shard-indexes.ts'
import { context, edit, silentLog } from '../shard-world.ts'

const definition: IndexDefinition = { kind: 'test', map: 'x', reduce: null, options: {} }
/** A page of the store ends with the row that makes it too large with its key, and its values alone are smaller. */
const valueBytes = 1100
const documents = 1000
const indexer: Indexer = {
  versionOf: () => '1',
  map: async (_definition, rows) =>
    rows.map(({ id }) => ({ rows: [{ key: id, value: new Uint8Array(valueBytes) }] })),
  groupOf: key => key,
  reduce: async () => [],
  rereduce: async () => [],
  encodeGroup: (_definition, _row, _level, value) => value,
}

describe('a scan of rows', () => {
  it('reads no further than the page that its reader has taken', async () => {
    const replica = new MemoryShardReplica({ history: 'one' })
    const edits = Array.from({ length: documents }, (_, number) => edit(String(number), null, {}))
    await replica.updateDocuments({ edits, revsLimit: 10 }, context)
    const clock = new RealClock()
    const store = await IndexStore.open({
      storage: new MemoryStorage(), log: silentLog, random: new SeededRandom(1), clock,
    })
    const indexes = new ShardIndexes({
      owner: 'shard', database: 'db', store, replica, indexer, queue: new BuildQueue(clock), clock,
      turns: new Turns(clock),
    })
    await indexes.buildIndex({ definition, through: 'newest', waitMs: 20_000 }, context)
    let read = 0
    const snapshotOf = store.store.snapshot.bind(store.store)
    store.store.snapshot = () => {
      const snapshot = snapshotOf()
      const iterate = snapshot.iterate.bind(snapshot)
      snapshot.iterate = (...parameters) => {
        const iterator = iterate(...parameters)
        const next = iterator.next.bind(iterator)
        iterator.next = async count => {
          const entries = await next(count)
          read += entries.length
          return entries
        }
        return iterator
      }
      return snapshot
    }
    let sent = 0
    const request = { index: indexId(definition), through: 0, descending: false, ranges: [{}] }
    for await (const page of indexes.scanIndex(request, context)) {
      sent += page.filter(({ kind }) => kind === 'row').length
      expect(read).to.equal(sent)
    }
    expect(sent).to.equal(documents)
    await indexes.close()
    await store.close()
  })
})
