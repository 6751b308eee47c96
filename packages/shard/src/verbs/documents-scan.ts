import type { DocumentRow, ScanDocumentsRequest } from '@sectional/core'
import { ShardKeys } from '../key-layout.ts'
import { DocumentRecord } from '../records/document-record.ts'
import { asLeaves } from '../records/stored-leaves.ts'
import type { StoredLeaf } from '../records/stored-leaves.ts'
import type { ShardRecords } from '../shard-records.ts'
import { withBodies } from './body-pages.ts'
import { scanEntries } from './entry-scan.ts'

/** Live documents by id, as of the first page. */
export async function* scanDocuments(records: ShardRecords, request: ScanDocumentsRequest): AsyncGenerator<readonly DocumentRow[]> {
  const { start, end, descending } = request
  const range = descending ? records.keys.ids('i', end, start) : records.keys.ids('i', start, end)
  let left = request.limit ?? Number.POSITIVE_INFINITY
  if (left <= 0) return
  for await (const page of scanEntries(records.store, range, { reverse: descending }, left)) {
    const rows: { row: DocumentRow; leaf: StoredLeaf }[] = []
    for (const [key, value] of page) {
      if (rows.length >= left) break
      const id = ShardKeys.text(key)
      const record = DocumentRecord.decode(id, value)
      if (record.deleted) continue
      const row = { id, revision: record.winner.revision, ...(request.leaves ? { leaves: asLeaves(record.leaves) } : {}) }
      rows.push({ row, leaf: record.winner })
    }
    left -= rows.length
    if (rows.length > 0) {
      if (request.body) yield* withBodies(records, rows)
      else yield rows.map(({ row }) => row)
    }
    if (left <= 0) return
  }
}
