import type { DocumentRow, PageLimits, ScanDocumentsRequest } from '@sectional/core'
import { ShardKeys } from '../records/key-layout.ts'
import type { RevisionContent } from '../records/body-record.ts'
import { DocumentRecord } from '../records/document-record.ts'
import { asLeaves } from '../records/stored-leaves.ts'
import type { ShardRecords } from '../reading/shard-records.ts'
import { withBodies } from './body-pages.ts'
import type { ReadRow } from './body-pages.ts'
import { scanEntries } from '../records/entry-scan.ts'

/** Lists the live documents by id, from a snapshot that is taken for the first page. */
export function scanDocuments(
  records: ShardRecords, request: ScanDocumentsRequest,
): AsyncGenerator<readonly DocumentRow[]> {
  return records.pages.hold(limits => rowsOf(records, request, limits))
}

async function* rowsOf(
  records: ShardRecords, request: ScanDocumentsRequest, { pageBytes }: PageLimits,
): AsyncGenerator<readonly DocumentRow[]> {
  const { start, end, descending } = request
  const range = descending ? records.keys.ids('i', end, start) : records.keys.ids('i', start, end)
  const show = request.leaves ? rowWithLeaves : documentRow
  let left = request.limit ?? Number.POSITIVE_INFINITY
  if (left <= 0) return
  for await (const page of scanEntries(records.store, range, { reverse: descending }, left)) {
    const rows: ReadRow[] = []
    for (const [key, value] of page) {
      if (rows.length >= left) break
      const id = ShardKeys.text(key)
      const { deleted, leaves } = DocumentRecord.decode(id, value)
      if (!deleted) rows.push({ id, leaves })
    }
    left -= rows.length
    if (rows.length > 0) {
      if (request.body) yield* withBodies(records, rows, show, pageBytes)
      else yield rows.map(row => show(row))
    }
    if (left <= 0) return
  }
}

function documentRow({ id, leaves }: ReadRow, content?: RevisionContent): DocumentRow {
  const { revision } = leaves[0]!
  if (content === undefined) return { id, revision }
  const { body, attachments } = content
  return attachments === undefined ? { id, revision, body } : { id, revision, body, attachments }
}

function rowWithLeaves(row: ReadRow, content?: RevisionContent): DocumentRow {
  return { ...documentRow(row, content), leaves: asLeaves(row.leaves) }
}
