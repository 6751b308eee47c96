import type { ReplicaInfo } from '@sectional/core'
import { ShardKeys } from '../records/key-layout.ts'
import type { ReplicaState } from '../records/state-record.ts'
import { decodeCheckpoint } from '../reading/shard-records.ts'
import type { ShardRecords } from '../reading/shard-records.ts'
import { oldestPurge } from './documents-purge.ts'
import { scanEntries } from '../records/entry-scan.ts'

/** Collects the state of a replica. It scans the checkpoints, one for each replica that ever sent changes or purges. */
export async function replicaInfo(
  records: ShardRecords,
  identity: { readonly history: string; readonly catchingUp: boolean; readonly compacting: boolean },
  committed: () => ReplicaState,
): Promise<ReplicaInfo> {
  const file = await records.store.approximateSize(records.keys.all())
  const seen = await readCheckpoints(records, 'c')
  const purgesSeen = await readCheckpoints(records, 'g')
  const oldest = committed().purgeSequence === 0 ? 0 : await oldestPurge(records)
  const { sequence, documentCount, deletedCount, purgeSequence, activeBytes, externalBytes } = committed()
  return {
    ...identity,
    sequence,
    documentCount,
    deletedCount,
    purgeSequence,
    oldestPurge: oldest,
    purgesSeen,
    // LevelDB's estimate does not include the data that is only in its memory table and log.
    sizes: { file: Math.max(file, activeBytes), active: activeBytes, external: externalBytes },
    seen,
  }
}

async function readCheckpoints(records: ShardRecords, kind: 'c' | 'g'): Promise<Record<string, number>> {
  const found: Record<string, number> = {}
  for await (const page of scanEntries(records.store, records.keys.kind(kind))) {
    for (const [key, value] of page) found[ShardKeys.text(key)] = decodeCheckpoint(value)
  }
  return found
}
