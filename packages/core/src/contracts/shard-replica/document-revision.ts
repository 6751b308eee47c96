/** Revisions of documents as replicas store them and as they travel between replicas. */

/** A revision's ancestry as in `_revisions`: `ids[0]` is the hash at generation `start`, then its parents. */
export interface RevisionPath { readonly start: number; readonly ids: readonly string[] }

/** One leaf of a revision tree. `revision` is `{generation}-{hash}`. */
export interface Leaf { readonly revision: string; readonly deleted: boolean }

/** One attachment of one revision. Its content is stored separately, as a blob, on each node that has the document. */
export interface AttachmentRecord {
  readonly name: string
  readonly contentType: string
  /** Generation of the revision that wrote the attachment. */
  readonly revpos: number
  /** Base64 of the MD5 of the stored bytes. */
  readonly digest: string
  /** SHA-256 of the stored bytes in lower-case hex: the key of the blob. */
  readonly blob: string
  /** Bytes of the content as clients see it. */
  readonly length: number
  /** How the stored bytes are encoded. */
  readonly encoding: 'identity' | 'gzip'
  /** Length of the stored bytes. */
  readonly storedLength: number
}

/** A revision with its content, as it travels between replicas. */
export interface DocumentRevision {
  readonly id: string
  readonly path: RevisionPath
  readonly deleted: boolean
  /** UTF-8 JSON object text without members that start with an underscore; `{}` when empty. Never re-serialised. */
  readonly body: Uint8Array
  /** In the document's order; absent: none. */
  readonly attachments?: readonly AttachmentRecord[]
  /**
   * Ids of the purges of this revision that its sender had applied before it received the revision again. A receiver
   * that has recorded these purges stores the revision nevertheless. Absent: none.
   */
  readonly purges?: readonly string[]
  /** The attempt that made the revision (`DocumentEdit.attempt`). Absent: there is none, or the sender forgot it. */
  readonly attempt?: number
}
