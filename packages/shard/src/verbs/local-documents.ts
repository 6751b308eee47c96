import { openedBytesMax } from '@sectional/core'
import type {
  LocalDocument, ScanLocalDocumentsRequest, UpdateLocalDocumentReply, UpdateLocalDocumentRequest,
} from '@sectional/core'
import { ShardKeys } from '../records/key-layout.ts'
import { decodeLocal } from '../records/local-record.ts'
import type { LocalRecord } from '../records/local-record.ts'
import type { ShardRecords } from '../reading/shard-records.ts'
import type { WriteDraft } from '../writing/write-draft.ts'
import { scanEntries } from '../records/entry-scan.ts'

export function openLocalDocuments(records: ShardRecords, ids: readonly string[]): (LocalDocument | null)[] {
  const opened: (LocalDocument | null)[] = []
  let bytes = 0
  for (const id of ids) {
    if (bytes > openedBytesMax) break
    const record = records.localDocument(id)
    bytes += record?.body?.length ?? 0
    opened.push(record === undefined ? null : asLocalDocument(record))
  }
  return opened
}

/**
 * Decides an update of a local document. The last write wins. The stamp always increases, even if the clock goes back.
 */
export function decideLocalUpdate(
  draft: WriteDraft, request: UpdateLocalDocumentRequest, now: number,
): UpdateLocalDocumentReply {
  const { id, revision, body, mustExist } = request
  const existing = draft.localDocument(id)
  if (mustExist && (existing?.body ?? null) === null) return { kind: 'missing' }
  const document: LocalDocument = { id, revision, stamp: Math.max(Math.floor(now), (existing?.stamp ?? 0) + 1), body }
  draft.putLocal(document)
  return { kind: 'updated', document }
}

/** Lists local documents by id, without the deleted ones. */
export async function* scanLocalDocuments(
  records: ShardRecords, request: ScanLocalDocumentsRequest,
): AsyncGenerator<readonly LocalDocument[]> {
  const { start, end, descending } = request
  const range = descending ? records.keys.ids('l', end, start) : records.keys.ids('l', start, end)
  let left = request.limit ?? Number.POSITIVE_INFINITY
  if (left <= 0) return
  for await (const page of scanEntries(records.store, range, { reverse: descending }, left)) {
    const rows: LocalDocument[] = []
    for (const [key, value] of page) {
      if (rows.length >= left) break
      const record = decodeLocal(ShardKeys.text(key), value)
      if (record.body !== null) rows.push(asLocalDocument(record))
    }
    left -= rows.length
    if (rows.length > 0) yield rows
    if (left <= 0) return
  }
}

function asLocalDocument({ id, revision, stamp, body }: LocalRecord): LocalDocument {
  return { id, revision, stamp, body }
}
