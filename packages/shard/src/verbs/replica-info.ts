import type { ReplicaInfo } from '@sectional/core'
import { ShardKeys } from '../key-layout.ts'
import type { ReplicaState } from '../records/state-record.ts'
import { decodeCheckpoint } from '../shard-records.ts'
import type { ShardRecords } from '../shard-records.ts'
import { scanEntries } from './entry-scan.ts'

/** Costs a scan of the checkpoints, of which there is one for each replica that ever sent changes. */
export async function replicaInfo(records: ShardRecords, identity: { readonly history: string; readonly catchingUp: boolean }, committed: () => ReplicaState): Promise<ReplicaInfo> {
  const file = await records.store.approximateSize(records.keys.all())
  const seen: Record<string, number> = {}
  for await (const page of scanEntries(records.store, records.keys.kind('c'))) {
    for (const [key, value] of page) seen[ShardKeys.text(key)] = decodeCheckpoint(value)
  }
  const { sequence, documentCount, deletedCount, purgeSequence, activeBytes, externalBytes } = committed()
  return {
    ...identity,
    sequence,
    documentCount,
    deletedCount,
    purgeSequence,
    // LevelDB's estimate leaves out what still lies in memory and its log.
    sizes: { file: Math.max(file, activeBytes), active: activeBytes, external: externalBytes },
    seen,
  }
}
