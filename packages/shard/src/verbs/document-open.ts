import type { DocumentSnapshot, OpenDocumentRequest } from '@sectional/core'
import { asLeaves } from '../records/stored-leaves.ts'
import type { DocumentRecord } from '../records/document-record.ts'
import type { ShardRecords } from '../shard-records.ts'

/** Two point reads on the calling thread: 15 to 20 us. */
export function openDocument(records: ShardRecords, { id, body, tree }: OpenDocumentRequest): DocumentSnapshot | null | Promise<DocumentSnapshot> {
  const record = records.document(id)
  if (record === undefined) return null
  const bytes = body ? records.body(record.winner.bodySequence) : undefined
  return bytes instanceof Promise ? bytes.then(whole => snapshot(record, tree, whole)) : snapshot(record, tree, bytes)
}

function snapshot(record: DocumentRecord, tree: boolean, body: Uint8Array | undefined): DocumentSnapshot {
  const { sequence } = record
  const leaves = asLeaves(record.leaves)
  if (body === undefined) return tree ? { leaves, sequence, tree: record.tree.branches() } : { leaves, sequence }
  return tree ? { leaves, sequence, body, tree: record.tree.branches() } : { leaves, sequence, body }
}
