import type { DocumentSnapshot, OpenDocumentRequest } from '@sectional/core'
import { asLeaves } from '../records/stored-leaves.ts'
import type { DocumentRecord } from '../records/document-record.ts'
import type { RevisionContent } from '../records/body-record.ts'
import type { ShardRecords } from '../reading/shard-records.ts'

/** Opens a document. It needs two point reads on the calling thread, which take 15 to 20 us. */
export function openDocument(
  records: ShardRecords, request: OpenDocumentRequest,
): DocumentSnapshot | null | Promise<DocumentSnapshot | null> {
  const { id, body, tree } = request
  const record = records.document(id)
  if (record === undefined) return null
  if (!body) return snapshot(record, tree, undefined)
  const { bodySequence } = record.winner
  const shown = (content: RevisionContent | undefined): DocumentSnapshot | null | Promise<DocumentSnapshot | null> => {
    if (content !== undefined) return snapshot(record, tree, content)
    records.assertGone(id, bodySequence)
    return openDocument(records, request)
  }
  const content = records.body(bodySequence)
  return content instanceof Promise ? content.then(shown) : shown(content)
}

/**
 * Makes the reply. Each shape has an object literal of its own, because to spread an object costs as much as the reads
 * of a small document.
 */
function snapshot(record: DocumentRecord, tree: boolean, content: RevisionContent | undefined): DocumentSnapshot {
  const { sequence } = record
  const leaves = asLeaves(record.leaves)
  if (content === undefined) return tree ? { leaves, sequence, tree: record.tree.branches() } : { leaves, sequence }
  const { body, attachments } = content
  if (attachments !== undefined) {
    return { leaves, sequence, body, attachments, ...(tree && { tree: record.tree.branches() }) }
  }
  return tree ? { leaves, sequence, body, tree: record.tree.branches() } : { leaves, sequence, body }
}
