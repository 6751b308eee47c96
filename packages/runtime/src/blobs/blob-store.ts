/**
 * Content-addressed files for content that is too large for LevelDB: the name of a blob is the SHA-256 of its bytes in
 * lower-case hex. `blob-store-files` and `blob-store-memory` both run `blob-store-suite`.
 */
export interface BlobStorage {
  /**
   * Opens or creates the store of that name, `[a-z0-9-]+`. Blobs that were unfinished when the last process ended are
   * removed.
   */
  open(name: string): Promise<BlobStore>
}

export interface BlobStore {
  create(): Promise<BlobWriter>
  /**
   * Reads a blob in chunks of at most 64 KiB; each chunk is checked before it is returned. Stopping early closes the
   * file.
   * @throws BlobError `missing`, `corrupt`, `io`
   */
  open(hash: string, range?: BlobRange): AsyncIterable<Uint8Array>
  /** Returns the number of bytes; undefined when the blob does not exist. */
  length(hash: string): Promise<number | undefined>
  has(hash: string): Promise<boolean>
  /** Deletes a blob; does nothing when it does not exist. Reads that have begun can finish. */
  delete(hash: string): Promise<void>
  /** Iterates over all hashes in ascending order. @throws BlobError */
  list(): AsyncIterable<string>
  /** Closes the store and aborts open writers. */
  close(): Promise<void>
}

/** A range of bytes; `end` is exclusive. Both bounds are limited to the length of the blob. */
export interface BlobRange { readonly start?: number; readonly end?: number }

/** Writes one blob. Exactly one call of `finish` or `abort` ends a writer; after a failure only `abort` is allowed. */
export interface BlobWriter {
  /**
   * Resolves when more can be written. A later failure rejects the next call. Only one call at a time is allowed, and
   * the chunk must not be changed afterwards.
   */
  write(chunk: Uint8Array): Promise<void>
  /**
   * Completes the blob; it is durable (file and directory are fsync'ed) when this resolves.
   * @param announce awaited with the hash before the blob becomes visible
   */
  finish(announce?: (hash: string) => Promise<void>): Promise<{ readonly hash: string; readonly length: number }>
  abort(): Promise<void>
}

export const blobChunkBytes = 64 * 1024

export type BlobErrorCode = 'missing' | 'corrupt' | 'full' | 'io' | 'closed'

export class BlobError extends Error {
  readonly code: BlobErrorCode
  constructor(code: BlobErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'BlobError'
    this.code = code
  }
}

export function isBlobHash(name: string): boolean {
  return /^[0-9a-f]{64}$/.test(name)
}

/** @throws TypeError unless the hash is 64 lower-case hex digits; it becomes part of a path */
export function checkBlobHash(hash: string): void {
  if (!isBlobHash(hash)) {
    throw new TypeError(`a blob is named by 64 lower-case hex digits: ${JSON.stringify(hash)}`)
  }
}
