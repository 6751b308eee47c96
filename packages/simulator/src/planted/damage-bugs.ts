/** Bugs that ignore checksums, so that checkers must find the effects of damage. */
import { shardKey } from '@sectional/core'
import { sealed, sealBytes } from '@sectional/runtime'
import type { Store, StoreEntry } from '@sectional/runtime'
import { controlStoreName, documentStoreName, ShardKeys } from '@sectional/server'
import { withChanges, withStores } from './planted-bug.ts'
import type { PlantedBug } from './planted-bug.ts'

const snapshotChunk = 'c'

interface LifeSeen { readonly history: string; readonly seen: Readonly<Record<string, number>> }

export const damageBugs: readonly PlantedBug[] = [
  {
    name: 'unchecked-records',
    does: 'checksums of documents, rows of the changes log and counters are not verified',
    caughtBy: [
      'replicas-equal', 'converge', 'acknowledged-kept', 'internal-error', 'fatal', 'exception', 'changes-complete',
      'purged-stays', 'fresh-reads',
    ],
    plant: () => () => ({
      // Bodies have their checksum in another place, which is still checked.
      runtime: runtime =>
        withStores(runtime, (store, name) =>
          name === documentStoreName ? unchecked(store, key =>
            ShardKeys.prefixOf(key) > 0 && ShardKeys.kindOf(key) !== 'b') : store),
    }),
  },
  {
    name: 'unchecked-metadata',
    does: 'a node starts with a metadata log, a vote or a snapshot that differs from what it wrote',
    caughtBy: ['damaged-log', 'metadata-log', 'fatal', 'start', 'exception', 'converge'],
    plant: () => () => ({
      runtime: runtime => withStores(
        runtime, (store, name) => name === controlStoreName ? unchecked(store, key => key[0] !== snapshotChunk) : store,
      ),
    }),
  },
  {
    name: 'unnoticed-loss',
    does: 'a node keeps its replicas although acknowledged writes are missing in their store',
    caughtBy: [
      'replicas-equal', 'converge', 'acknowledged-kept', 'changes-complete', 'changes-follow', 'fresh-reads',
      'purged-stays', 'attachments-kept', 'blobs-kept', 'attachments-readable', 'internal-error', 'exception',
      'lost-writes',
    ],
    plant: () => () => ({ runtime: runtime => withStores(runtime, store => withChanges(store, { damage: [] })) }),
  },
  {
    name: 'unnoticed-loss-of-metadata',
    does: 'a node starts although acknowledged writes are missing in its metadata',
    caughtBy: ['damaged-log', 'metadata-log', 'fatal', 'start', 'exception', 'converge'],
    plant: () => () => ({
      runtime: runtime => ({
        ...runtime,
        storage: withChanges(runtime.storage, {
          open: (name, options) => runtime.storage.open(name, { ...options, onDamage: 'report' }),
        }),
      }),
    }),
  },
  {
    name: 'checkpoint-of-earlier-history',
    does: 'a rebuilt replica keeps the checkpoints of its previous incarnation, and digests show no difference',
    caughtBy: ['scenario', 'converge', 'replicas-equal', 'acknowledged-kept'],
    scenario: 'a replica that is rebuilt during a slow pass gets back what its disk had lost',
    plant: () => () => {
      const lives = new Map<string, LifeSeen>()
      return { seams: { replica: (shard, replica) => withChanges(replica, { upkeep: withChanges(replica.upkeep, {
        replicaInfo: async context => {
          const key = shardKey(shard)
          const info = await replica.upkeep.replicaInfo(context)
          const before = lives.get(key)
          if (before === undefined || before.history === info.history) lives.set(key, info)
          const histories = Object.keys({ ...before?.seen, ...info.seen })
          return {
            ...info,
            seen: Object.fromEntries(
              histories.map(history => [history, Math.max(before?.seen[history] ?? 0, info.seen[history] ?? 0)]),
            ),
          }
        },
        // Reports of a replica ask for one bucket, so leave those intact.
        digestDocuments: (buckets, context) =>
          buckets === 1
            ? replica.upkeep.digestDocuments(buckets, context)
            : Promise.resolve(Array.from({ length: buckets }, () => '')),
      }) }) } }
    },
  },
]

/** Returns a store that replaces the checksum of each sealed value by one that matches, whatever the value is. */
function unchecked(store: Store, isSealed: (key: string) => boolean): Store {
  const fitting = (key: string, value: Uint8Array): Uint8Array =>
    value.length >= sealBytes && isSealed(key) ? new Uint8Array(sealed(value.subarray(sealBytes))) : value
  const found = (key: string, value: Uint8Array | undefined): Uint8Array | undefined => value && fitting(key, value)
  return withChanges(store, {
    getSync: key => found(key, store.getSync(key)),
    getMany: async keys => (await store.getMany(keys)).map((value, index) => found(keys[index]!, value)),
    iterate: (range, options) => {
      const iterator = store.iterate(range, options)
      return {
        next: async count => (await iterator.next(count)).map(([key, value]): StoreEntry => [key, fitting(key, value)]),
        close: () => iterator.close(),
      }
    },
  })
}
