import type { IdBound } from '@sectional/core'
import { ShardKeys } from '../records/key-layout.ts'
import { DocumentRecord } from '../records/document-record.ts'
import type { ReplicaState } from '../records/state-record.ts'
import type { ShardRecords } from '../reading/shard-records.ts'
import { scanEntries } from '../records/entry-scan.ts'

/**
 * Those that a scan which starts at `before` leaves out, so that it is the scan's offset. Costs a scan of them
 * (about 3 us a document; keys only while the replica has no tombstone); without a bound a counter is read.
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
