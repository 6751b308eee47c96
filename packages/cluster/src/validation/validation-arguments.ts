/** The arguments of validation functions as JSON: `[newDoc, oldDoc, userCtx, secObj]`. */
import { formatRevision, parseRevision } from '@sectional/core'
import type { AttachmentRecord, DocumentRevision, RevisionPath } from '@sectional/core'
import type { DocumentWrite, ReplicatedWrite, WriteUser } from '../contracts/coordinator.ts'
import type { DatabaseRecord } from '../control/cluster-state.ts'

/** Number of ancestors that `_revisions` of the old document lists, as in CouchDB. */
const oldRevisionsMax = 20

interface ShownDocument {
  readonly id: string
  /** The revision and its ancestors. Empty: a document without a revision. */
  readonly path: RevisionPath
  readonly deleted: boolean
  readonly body: Uint8Array
  readonly attachments?: readonly AttachmentRecord[]
}

/** Returns the document that an edit makes. Its revision is that of the parent, because it has none of its own yet. */
export function editedDocument({ id, parent, deleted, body, attachments }: DocumentWrite): Buffer {
  const { generation: start, hash } = parent === null ? { generation: 0, hash: '' } : parseRevision(parent)
  return documentText({ id, path: { start, ids: parent === null ? [] : [hash] }, deleted, body, attachments })
}

export function replicatedDocument(write: ReplicatedWrite): Buffer {
  return documentText(write)
}

/** Returns null for a tombstone: a document that is created again has no old document. */
export function oldDocument(revision: DocumentRevision): Buffer | null {
  if (revision.deleted) return null
  const { start, ids } = revision.path
  return documentText({ ...revision, path: { start, ids: ids.slice(0, oldRevisionsMax) } })
}

/** Returns the last two arguments, which are the same for all documents of a request. */
export function contextText(db: DatabaseRecord, { name, roles }: WriteUser): string {
  return `,${JSON.stringify({ db: db.name, name, roles })},${JSON.stringify(db.security)}]`
}

export function argumentList(newDocument: Buffer, old: Buffer | null, context: string): Buffer {
  const texts = old === null ? [newDocument, Buffer.from(',null')] : [newDocument, Buffer.from(','), old]
  return Buffer.concat([Buffer.from('['), ...texts, Buffer.from(context)])
}

function documentText({ id, path: { start, ids }, deleted, body, attachments = [] }: ShownDocument): Buffer {
  const head = [
    `"_id":${JSON.stringify(id)}`,
    ...ids.length === 0 ? [] : [`"_rev":${JSON.stringify(formatRevision({ generation: start, hash: ids[0]! }))}`],
  ]
  const tail = [
    `"_revisions":${JSON.stringify({ start, ids })}`, ...deleted ? ['"_deleted":true'] : [],
    ...attachments.length === 0 ? [] : [`"_attachments":{${attachments.map(stub).join()}}`],
  ]
  // The body is the text of an object without special members.
  const members = body.subarray(1, body.length - 1)
  const comma = members.length === 0 ? '' : ','
  return Buffer.concat([Buffer.from(`{${head.join()},`), members, Buffer.from(`${comma}${tail.join()}}`)])
}

function stub({ name, contentType, revpos, digest, length }: AttachmentRecord): string {
  const shown = { content_type: contentType, revpos, digest: `md5-${digest}`, length, stub: true }
  return `${JSON.stringify(name)}:${JSON.stringify(shown)}`
}
