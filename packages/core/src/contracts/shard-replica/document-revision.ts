/** Revisions of documents as replicas store them and as they travel between replicas. */
/** A revision's ancestry as in `_revisions`: `ids[0]` is the hash at generation `start`, then its parents. */
export interface RevisionPath { readonly start: number; readonly ids: readonly string[] }

/** One leaf of a revision tree. `revision` is `{generation}-{hash}`. */
export interface Leaf { readonly revision: string; readonly deleted: boolean }

/** One attachment of one revision. The content lies apart, as a blob of each node that holds the document. */
export interface AttachmentRecord {
  readonly name: string
  readonly contentType: string
  /** Generation of the revision that wrote it. */
  readonly revpos: number
  /** Base64 of the MD5 of the stored bytes. */
  readonly digest: string
  /** SHA-256 of the stored bytes in lower-case hex: names the blob. */
  readonly blob: string
  /** Bytes of the content as clients see it. */
  readonly length: number
  /** How the stored bytes are encoded. */
  readonly encoding: 'identity' | 'gzip'
  /** Bytes as they are stored. */
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
  /** Purges that name this revision and that its sender had applied before it got the revision (anew). Absent: none. */
  readonly purges?: readonly string[]
  /** The attempt that made it (`DocumentEdit`), while the sender knows it. Absent: none, or it is forgotten. */
  readonly attempt?: number
}
