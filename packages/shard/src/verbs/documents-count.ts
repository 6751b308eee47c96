import type { IdBound } from '@sectional/core'
import { ShardKeys } from '../records/key-layout.ts'
import { DocumentRecord } from '../records/document-record.ts'
import type { ReplicaState } from '../records/state-record.ts'
import type { ShardRecords } from '../reading/shard-records.ts'
import { scanEntries } from '../records/entry-scan.ts'

/**
 * Counts the live documents that a scan from `before` leaves out, which is the scan's offset. The count needs a scan of
 * them (about 3 us for each), which reads only keys while the replica has no tombstone. Without a bound, the function
 * reads a counter.
 */
export async function countDocuments(
  records: ShardRecords, state: ReplicaState, request: { readonly before?: IdBound; readonly descending: boolean },
): Promise<number> {
  const { before, descending } = request
  if (before === undefined) return state.documentCount
  const bound = { id: before.id, inclusive: !before.inclusive }
  const range = descending ? records.keys.ids('i', bound, undefined) : records.keys.ids('i', undefined, bound)
  const values = state.deletedCount > 0
  let count = 0
  for await (const page of scanEntries(records.store, range, { values })) {
    if (!values) count += page.length
    else for (const [key, value] of page) if (!DocumentRecord.decode(ShardKeys.text(key), value).deleted) count++
  }
  return count
}
