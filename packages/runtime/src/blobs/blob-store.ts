/**
 * Content-addressed files for what is too large for LevelDB: a blob is named by the SHA-256 of its bytes in
 * lower-case hex. `blob-store-files` and `blob-store-memory` both run `blob-store-suite`.
 */
export interface BlobStorage {
  /** Opens (or creates) the store of that name, `[a-z0-9-]+`; what was being written when the process ended is gone. */
  open(name: string): Promise<BlobStore>
}

export interface BlobStore {
  create(): Promise<BlobWriter>
  /**
   * The bytes, in chunks of at most 64 KiB, each checked before it is given; stopping early releases the file.
   * @throws BlobError `missing`, `corrupt`, `io`
   */
  open(hash: string, range?: BlobRange): AsyncIterable<Uint8Array>
  /** Bytes, or undefined when there is no such blob. */
  length(hash: string): Promise<number | undefined>
  has(hash: string): Promise<boolean>
  /** Does nothing when there is no such blob. Readers that have begun finish. */
  delete(hash: string): Promise<void>
  /** Every hash, in ascending order. */
  list(): AsyncIterable<string>
  /** Aborts open writers. */
  close(): Promise<void>
}

/** `end` is exclusive; both are cut to the length of the blob. */
export interface BlobRange { readonly start?: number; readonly end?: number }

/** Exactly one of `finish` and `abort` ends a writer; after a failure only `abort` is left. */
export interface BlobWriter {
  /**
   * Resolves when more may be written; what fails later shows in the next call. One call at a time; chunks must not
   * change any more.
   */
  write(chunk: Uint8Array): Promise<void>
  /**
   * Durable (file and directory fsync'ed) when it resolves.
   * @param announce awaited with the hash before the blob can be found under it
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

/** @throws TypeError unless it is 64 lower-case hex digits: a hash becomes part of a path */
export function checkBlobHash(hash: string): void {
  if (!/^[0-9a-f]{64}$/.test(hash)) {
    throw new TypeError(`a blob is named by 64 lower-case hex digits: ${JSON.stringify(hash)}`)
  }
}
