import { hash as digest } from 'node:crypto'
import { ExternalTermWriter } from './external-term.ts'
import { parseRevision, revisionHashBytes } from './revision-id.ts'

/** One attachment as CouchDB hashes it. */
export interface AttachmentDigest {
  readonly name: string
  readonly type: string
  /** The MD5 of the stored bytes. */
  readonly md5: Uint8Array
}

export interface HashedEdit {
  readonly deleted: boolean
  /** The revision that the edit replaces; null: the edit makes a first revision. */
  readonly parent: string | null
  /** A JSON object without special members, in stored order. */
  readonly body: Uint8Array
  /** In document order. */
  readonly attachments?: readonly AttachmentDigest[]
}

const termVersion = 131
/** One writer serves all calls, because nothing is awaited between the first byte and the hash. */
const term = new ExternalTermWriter(4096)

/**
 * Returns the hash of the revision that an edit makes. It is the hash that CouchDB computes for the same edit, the MD5
 * of the Erlang term `[Deleted, ParentGeneration, ParentHash, Body, Attachments]`
 * (docs/reference/documents.md#revisions). An edit that was made on two clusters is therefore one revision after
 * replication, and not a conflict.
 *
 * @returns 32 lower-case hex digits
 * @throws ApiError `invalid_rev_format` when the parent is not a revision; RangeError when the body is not valid JSON
 */
export function revisionHash(edit: HashedEdit): string {
  term.restart()
  term.raw(termVersion)
  term.listHeader(5)
  term.atom(edit.deleted ? 'true' : 'false')
  if (edit.parent === null) {
    term.integer(0)
    term.integer(0)
  } else {
    const parent = parseRevision(edit.parent)
    term.integer(parent.generation)
    term.binary(revisionHashBytes(parent.hash))
  }
  term.json(edit.body)
  writeAttachments(edit.attachments ?? [])
  term.listEnd()
  return digest('md5', term.bytes(), 'hex')
}

function writeAttachments(attachments: readonly AttachmentDigest[]): void {
  term.listHeader(attachments.length)
  if (attachments.length === 0) return
  for (const attachment of attachments.toReversed()) {
    term.tupleHeader(3)
    term.binary(Buffer.from(attachment.name, 'utf8'))
    term.binary(Buffer.from(attachment.type, 'utf8'))
    term.binary(attachment.md5)
  }
  term.listEnd()
}
