import { countedChangesMin } from '@sectional/core'
import { ShardKeys } from '../key-layout.ts'
import { isLocalChange } from '../records/change-record.ts'
import type { ReplicaState } from '../records/state-record.ts'
import type { ShardRecords } from '../shard-records.ts'
import { scanEntries } from './entry-scan.ts'

/**
 * Documents changed after `since`. Costs a scan of at most `countedChangesMin` of them and a page; the rest is
 * estimated from the bytes of the log that lie behind, between what was counted and all documents.
 */
export async function countChanges(records: ShardRecords, { sequence, documentCount, deletedCount }: ReplicaState, since: number): Promise<number> {
  const all = documentCount + deletedCount
  if (since >= sequence || all === 0) return 0
  if (since <= 0) return all
  const range = records.keys.changesAfter(since)
  let counted = 0
  for await (const page of scanEntries(records.store, range)) {
    for (const [, value] of page) if (!isLocalChange(value)) counted++
    if (counted < countedChangesMin) continue
    const last = ShardKeys.sequence(page.at(-1)![0])
    const [behind, whole] = await Promise.all([
      records.store.approximateSize(records.keys.changesAfter(last)), records.store.approximateSize(records.keys.kind('s')),
    ])
    // What lies in memory has no size yet: the newest rows, one for each sequence at most.
    const share = whole === 0 ? sequence - last : Math.round(all * behind / whole)
    return Math.min(all, counted + share, counted + sequence - last)
  }
  return counted
}
