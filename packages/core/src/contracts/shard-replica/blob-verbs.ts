/** The content of attachments, by the hash of its bytes. */
import { call, download, upload, type VerbsOf } from '../verb-table.ts'

export interface WrittenBlob { readonly hash: string; readonly length: number }

/** Bytes of a blob; `end` is exclusive, and both are cut to its length. Absent: all of it. */
export interface BlobSpan { readonly start: number; readonly end: number }

/** `span` null: the whole blob. */
export interface ReadBlobRequest { readonly hash: string; readonly span: BlobSpan | null }

export const blobVerbs = {
  /**
   * Stores content for the documents that will name it. A write that names content which is not there is refused with
   * `missing_blob`. The content is durable when the call resolves, and it is kept for at least ten minutes even if
   * nothing names it yet. The replica takes one chunk after the other; `timeoutMs` bounds each wait for the replica,
   * not the whole call. When reading the chunks throws, nothing is left behind and the call rejects. The caller must
   * not change a chunk afterwards.
   */
  writeBlob: upload<WrittenBlob>(),
  /** Fails with `missing_blob`, or with `damaged_blob` in place of the first bytes that are not what was written. */
  readBlob: download<ReadBlobRequest>(),
  /** Says for each hash whether the blob is there. Blobs that are there are kept as after `writeBlob`. */
  hasBlobs: call<readonly string[], readonly boolean[]>(),
}

export interface BlobReplica extends VerbsOf<typeof blobVerbs> {}
