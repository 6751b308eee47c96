import { countedChangesMin } from '@sectional/core'
import { isDocumentChange } from '../records/change-record.ts'
import type { ReplicaState } from '../records/state-record.ts'
import type { ShardRecords } from '../reading/shard-records.ts'
import { scanEntries } from '../records/entry-scan.ts'

/**
 * Counts the documents that changed after `since`. An exact count needs a scan of these changes. When more than
 * `countedChangesMin` sequences are left, the count is an estimate, which assumes that the rows of the changes log are
 * spread evenly over its sequences.
 */
export async function countChanges(
  records: ShardRecords, { sequence, documentCount, deletedCount }: ReplicaState, since: number,
): Promise<number> {
  const all = documentCount + deletedCount
  const left = sequence - since
  if (left <= 0 || all === 0) return 0
  if (since <= 0) return all
  if (left > countedChangesMin) return Math.min(all, Math.max(1, Math.round(all * left / sequence)))
  let counted = 0
  for await (const page of scanEntries(records.store, records.keys.changesAfter(since))) {
    for (const [, value] of page) if (isDocumentChange(value)) counted++
  }
  return counted
}
