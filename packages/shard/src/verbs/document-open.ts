import type { DocumentSnapshot, OpenDocumentRequest } from '@sectional/core'
import { asLeaves } from '../records/stored-leaves.ts'
import type { ShardRecords } from '../shard-records.ts'

/** Two point reads on the calling thread: 15 to 20 us. */
export function openDocument(records: ShardRecords, { id, body, tree }: OpenDocumentRequest): DocumentSnapshot | null | Promise<DocumentSnapshot> {
  const record = records.document(id)
  if (record === undefined) return null
  const snapshot: DocumentSnapshot = {
    leaves: asLeaves(record.leaves),
    sequence: record.sequence,
    ...(tree ? { tree: record.tree.branches() } : {}),
  }
  if (!body) return snapshot
  const bytes = records.body(record.winner.bodySequence)
  return bytes instanceof Promise ? bytes.then(whole => ({ ...snapshot, body: whole })) : { ...snapshot, body: bytes }
}
