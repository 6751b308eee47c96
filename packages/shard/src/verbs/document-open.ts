import type { DocumentSnapshot, OpenDocumentRequest } from '@sectional/core'
import { asLeaves } from '../records/stored-leaves.ts'
import type { DocumentRecord } from '../records/document-record.ts'
import type { RevisionContent } from '../records/body-record.ts'
import type { ShardRecords } from '../shard-records.ts'

/** Two point reads on the calling thread: 15 to 20 us. */
export function openDocument(records: ShardRecords, { id, body, tree }: OpenDocumentRequest): DocumentSnapshot | null | Promise<DocumentSnapshot> {
  const record = records.document(id)
  if (record === undefined) return null
  const content = body ? records.body(record.winner.bodySequence) : undefined
  return content instanceof Promise ? content.then(whole => snapshot(record, tree, whole)) : snapshot(record, tree, content)
}

/** One object literal a shape: spreading costs as much as the reads of a small document. */
function snapshot(record: DocumentRecord, tree: boolean, content: RevisionContent | undefined): DocumentSnapshot {
  const { sequence } = record
  const leaves = asLeaves(record.leaves)
  if (content === undefined) return tree ? { leaves, sequence, tree: record.tree.branches() } : { leaves, sequence }
  const { body, attachments } = content
  if (attachments !== undefined) return { leaves, sequence, body, attachments, ...(tree && { tree: record.tree.branches() }) }
  return tree ? { leaves, sequence, body, tree: record.tree.branches() } : { leaves, sequence, body }
}
