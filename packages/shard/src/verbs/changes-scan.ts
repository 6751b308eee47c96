import { ReplicaError } from '@sectional/core'
import type { ChangeRow, PageLimits, ScanChangesRequest } from '@sectional/core'
import { ShardKeys } from '../records/key-layout.ts'
import type { RevisionContent } from '../records/body-record.ts'
import { decodeChange } from '../records/change-record.ts'
import { asLeaves } from '../records/stored-leaves.ts'
import type { ShardRecords } from '../reading/shard-records.ts'
import { withBodies } from './body-pages.ts'
import type { ReadRow } from './body-pages.ts'
import { scanEntries } from '../records/entry-scan.ts'

interface ReadChange extends ReadRow { readonly sequence: number; readonly purged: boolean }

/** Lists each document once, at its last change, from a snapshot that is taken for the first page. */
export function scanChanges(
  records: ShardRecords, request: ScanChangesRequest,
): AsyncGenerator<readonly ChangeRow[]> {
  // Only builds of indexes read purges. They are few, and take a page as soon as they have processed the last one.
  if (request.purges) return rowsOf(records, request, records.pages.most)
  return records.pages.hold(limits => rowsOf(records, request, limits))
}

async function* rowsOf(
  records: ShardRecords, request: ScanChangesRequest, { pageBytes }: PageLimits,
): AsyncGenerator<readonly ChangeRow[]> {
  const range = request.descending ? records.keys.kind('s') : records.keys.changesAfter(request.since)
  let left = request.limit ?? Number.POSITIVE_INFINITY
  if (left <= 0) return
  let checked = request.purges !== true
  // The snapshot, which is taken later, contains each row up to this sequence.
  const newest = request.purges === true ? records.state().sequence : 0
  for await (const page of scanEntries(records.store, range, { reverse: request.descending }, left)) {
    if (!checked) assertPurgesKept(records, request.since)
    checked = true
    const rows: ReadChange[] = []
    for (const [key, value] of page) {
      if (rows.length >= left) break
      const { id, leaves, purged = false } = decodeChange(value)
      if (leaves.length === 0 && !(purged ? request.purges : request.locals)) continue
      const sequence = ShardKeys.sequence(key)
      if (purged && isListedLater(records, id, sequence, newest)) continue
      rows.push({ id, leaves, purged, sequence })
    }
    left -= rows.length
    if (rows.length > 0) {
      if (request.body) yield* withBodies(records, rows, changeRow, pageBytes)
      else yield rows.map(row => changeRow(row))
    }
    if (left <= 0) return
  }
  if (!checked) assertPurgesKept(records, request.since)
}

/** Returns whether a purged document was written or purged again, so that a row up to `newest` lists it. */
function isListedLater(records: ShardRecords, id: string, sequence: number, newest: number): boolean {
  const purges = records.purges(id).map(({ changeSequence }) => changeSequence)
  return [records.document(id)?.sequence ?? 0, ...purges].some(later => later > sequence && later <= newest)
}

/**
 * Call this after the scan's snapshot was taken. The state then includes each trimmed purge that the snapshot lacks.
 */
function assertPurgesKept(records: ShardRecords, since: number): void {
  const { purgesForgotten } = records.state()
  if (since === 0 || since >= purgesForgotten) return
  throw new ReplicaError('position_expired', `the purges up to sequence ${purgesForgotten} were trimmed: read from 0`)
}

/** Makes a row. Each shape has an object literal of its own, because to spread a row costs as much as to decode it. */
function changeRow({ sequence, id, leaves, purged }: ReadChange, content?: RevisionContent): ChangeRow {
  if (purged) return { sequence, id, leaves: [], purged }
  if (leaves.length === 0) return { sequence, id, leaves: [], local: true }
  if (content === undefined) return { sequence, id, leaves: asLeaves(leaves) }
  const { body, attachments } = content
  return attachments === undefined
    ? { sequence, id, leaves: asLeaves(leaves), body }
    : { sequence, id, leaves: asLeaves(leaves), body, attachments }
}
