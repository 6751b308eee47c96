/** Bugs of indexes and of queries of views. */
import { shardKey } from '@sectional/core'
import type { CallContext, ChangeReplica, ChangeRow, IndexHead, IndexReplica, ShardId } from '@sectional/core'
import type { Runtime, Store, WriteBatch } from '@sectional/runtime'
import { indexStoreName } from '@sectional/server'
import type { IndexedReplica } from '@sectional/server'
import { everyNth, withChanges, withStores } from './planted-bug.ts'
import type { PlantedBug } from './planted-bug.ts'

/** Characters before the kind of a record (packages/shard/src/indexes/index-keys.ts). */
const keyPrefixLength = 4
const wrongRows = ['views-exact', 'indexes-exact', 'view-answers', 'views-fresh', 'finds-exact', 'find-answers']

export const viewBugs: readonly PlantedBug[] = [
  changesBug('index-skips-purges', 'an index does not read purges, so that it keeps the rows of purged documents',
    row => row.purged !== true),
  changesBug('index-keeps-deleted', 'an index does not read deletions, so that it keeps the rows of deleted documents',
    row => row.leaves[0]?.deleted !== true),
  {
    name: 'unnoticed-history',
    does: 'the indexes of a rebuilt replica belong to the history that it had before',
    caughtBy: [...wrongRows, 'unused-indexes'],
    plant: () => {
      const histories = new Map<string, string>()
      return node => ({
        seams: {
          indexed: indexed => {
            const key = `${node} ${shardKey(indexed.shard)}`
            const first = histories.get(key) ?? indexed.history
            histories.set(key, first)
            return first === indexed.history ? indexed : withHistory(indexed, first)
          },
        },
      })
    },
  },
  {
    name: 'position-ahead-of-rows',
    does: 'after a crash, an index continues from the newest position that it had, although rows before it are lost',
    caughtBy: wrongRows,
    plant: () => {
      const states = new Map<string, Map<string, Uint8Array>>()
      return node => ({
        runtime: runtime => withIndexStore(runtime, async store => {
          const newest = states.get(node) ?? new Map<string, Uint8Array>()
          states.set(node, newest)
          await store.write(batch => {
            for (const [key, state] of newest) if (store.getSync(key) !== undefined) batch.put(key, state)
          })
          return withBatches(store, batch => ({
            put: (key, value) => {
              if (kindOf(key) === 'm') newest.set(key, value)
              batch.put(key, value)
            },
            putLatest: (key, value) => batch.putLatest(key, value),
            delete: key => batch.delete(key),
          }))
        }),
      })
    },
  },
  {
    name: 'rows-of-replaced-revisions',
    does: 'the rows of a replaced revision stay in the index',
    caughtBy: wrongRows,
    plant: () => () => ({
      runtime: runtime => withIndexStore(runtime, store => withBatches(store, batch => ({
        put: (key, value) => batch.put(key, value),
        putLatest: (key, value) => batch.putLatest(key, value),
        delete: key => { if (kindOf(key) !== 'r') batch.delete(key) },
      }))),
    }),
  },
  indexBug('rows-out-of-order', 'the rows of one page in three are in reverse order', wrongRows, indexes => {
    const reverses = everyNth(3)
    return {
      scanIndex: async function* (request, context) {
        for await (const page of indexes.scanIndex(request, context)) {
          const heads = page.filter(row => row.kind === 'head')
          const rows = page.filter(row => row.kind !== 'head')
          yield [...heads, ...reverses() ? rows.reverse() : rows]
        }
      },
    }
  }),
  indexBug('query-does-not-wait', 'a query reads an index as it is, without the writes before it', wrongRows,
    indexes => ({
      scanIndex: (request, context) => indexes.scanIndex({ ...request, through: 0 }, context),
      reduceIndex: (request, context) => indexes.reduceIndex({ ...request, through: 0 }, context),
    })),
  indexBug('stale-reductions', 'reductions are kept, and returned again after the index has changed', wrongRows,
    indexes => {
      const kept = new Map<string, (readonly object[])[]>()
      return {
        reduceIndex: async function* (request, context) {
          const key = JSON.stringify({ ...request, through: 0 })
          let pages = kept.get(key)
          if (pages === undefined) {
            pages = []
            for await (const page of indexes.reduceIndex(request, context)) pages.push(page)
            kept.set(key, pages)
          }
          yield* pages as (readonly IndexHead[])[]
        },
      }
    }),
  indexBug('skips-too-many', 'a replica that leaves out rows for a query leaves out one too many', wrongRows,
    indexes => ({
      scanIndex: ({ skip = 0, ...request }, context) =>
        indexes.scanIndex({ ...request, skip: skip === 0 ? 0 : skip + 1 }, context),
    })),
  indexBug('find-loses-matches', 'one match in seven is missing in the answers of a replica', ['finds-exact'],
    indexes => {
      const loses = everyNth(7)
      return {
        find: async function* (request, context) {
          for await (const page of indexes.find(request, context)) {
            yield page.filter(({ kind }) => kind !== 'found' || !loses())
          }
        },
      }
    }),
  indexBug('cleanup-forgets', 'a cleanup of views removes nothing', ['unused-indexes'], () => ({
    dropIndexes: async () => {},
  })),
]

/** Defines a bug of the changes that an index reads. @param reads returns false for the rows that it does not see */
function changesBug(name: string, does: string, reads: (row: ChangeRow) => boolean): PlantedBug {
  return {
    name, does, caughtBy: wrongRows,
    plant: () => () => ({
      seams: {
        indexed: indexed => {
          const { replica } = indexed
          const scanChanges: ChangeReplica['scanChanges'] = async function* (request, context) {
            for await (const rows of replica.scanChanges(request, context)) yield rows.filter(reads)
          }
          return { ...indexed, replica: withChanges(replica, { scanChanges }) }
        },
      },
    }),
  }
}

/** Defines a bug of the indexes of each local replica, which checkers see, too. */
function indexBug(
  name: string, does: string, caughtBy: readonly string[], change: (indexes: IndexReplica) => Partial<IndexReplica>,
): PlantedBug {
  return {
    name, does, caughtBy,
    plant: () => () => {
      const changed = new Map<string, IndexReplica>()
      return {
        seams: {
          immediateIndexes: false,
          indexes: local => (shard: ShardId) => {
            const key = shardKey(shard)
            let indexes = changed.get(key)
            if (indexes === undefined) {
              const unchanged = local(shard)
              changed.set(key, indexes = withChanges(unchanged, change(unchanged)))
            }
            return indexes
          },
        },
      }
    },
  }
}

/** Shows a replica to its indexes under another history. */
function withHistory(indexed: IndexedReplica, history: string): IndexedReplica {
  const { replica } = indexed
  const call = (context: CallContext): CallContext => ({ ...context, history: undefined })
  return {
    ...indexed, history, newest: () => undefined,
    replica: withChanges(replica, {
      waitForChange: async (seen, context) =>
        ({ ...await replica.waitForChange({ ...seen, history: '' }, call(context)), history }),
      scanChanges: (request, context) => replica.scanChanges(request, call(context)),
    }),
  }
}

function withIndexStore(runtime: Runtime, change: (store: Store) => Store | Promise<Store>): Runtime {
  return withStores(runtime, (store, name) => name === indexStoreName ? change(store) : store)
}

function withBatches(store: Store, change: (batch: WriteBatch) => WriteBatch): Store {
  return withChanges(store, { write: fill => store.write(batch => fill(change(batch))) })
}

/** Returns the kind of a record in the store of indexes: `m` for the state of an index, `r` for a row. */
function kindOf(key: string): string {
  return key.charAt(keyPrefixLength)
}
