/** Blobs: the contents of attachments, each identified by the SHA-256 of its bytes. */
import { call, download, upload, type VerbsOf } from '../verb-table.ts'

export interface WrittenBlob { readonly hash: string; readonly length: number }

/** A range of a blob's bytes. `end` is exclusive. Both are limited to the blob's length. */
export interface BlobSpan { readonly start: number; readonly end: number }

/** `span` null: the whole blob. */
export interface ReadBlobRequest { readonly hash: string; readonly span: BlobSpan | null }

export const blobVerbs = {
  /**
   * Stores a blob before the write of the revisions that refer to it: a write that refers to an absent blob is refused
   * with `missing_blob`. The blob is durable when the call resolves, and it is kept for the time of a lease (at least
   * ten minutes, 30 minutes in the engine) even if no revision refers to it yet. The replica takes one chunk after the
   * other; `timeoutMs` bounds each wait for the replica, not the whole call. When the source of the chunks throws,
   * nothing is stored and the call rejects. The caller must not change a chunk after it handed it over.
   */
  writeBlob: upload<WrittenBlob>(),
  /** Fails with `missing_blob`. Fails with `damaged_blob` instead of returning bytes that differ from those written. */
  readBlob: download<ReadBlobRequest>(),
  /** Tells for each hash whether the blob is present, and renews the leases of those that are. */
  hasBlobs: call<readonly string[], readonly boolean[]>(),
}

export interface BlobReplica extends VerbsOf<typeof blobVerbs> {}
