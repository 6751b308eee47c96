/**
 * Ordered key-value stores with durable batches. Values are bytes. Keys are well-formed text in the order of its UTF-8
 * bytes, which crosses to LevelDB and back at a fraction of what a Buffer costs
 * (docs/decisions/0001-storage-layout.md). A key that is bytes, such as the sort key of an index, has one character
 * from U+0000 to U+00FF in place of each byte, which keeps their order (docs/decisions/0010-index-store.md).
 * `storage-level` is LevelDB on disk, `storage-memory` the double with simulated crashes; both run `storage-suite`.
 */
export interface Storage {
  /** Opens (or creates) the store of that name. Names are `[a-z0-9-]+`. One opener at a time. */
  open(name: string, options?: StoreOptions): Promise<Store>
}

export interface StoreOptions {
  /** Bytes buffered before a table is written; default 16 MiB. */
  readonly writeBufferBytes?: number
  /** Bytes of block cache; default 16 MiB. */
  readonly cacheBytes?: number
  /**
   * What `open` does when acknowledged writes are missing or damaged beneath the store: `refuse` (the default) rejects
   * with `corrupt`, at each attempt; `report` opens what is left, and `Store.damage` says what was found.
   */
  readonly onDamage?: 'refuse' | 'report'
  /**
   * Writes that are older than this are noticed to be missing even when nothing behind them is left. Milliseconds; 0:
   * every acknowledged write is, which costs each batch a second fsync. Default 1000. Closing the store covers all of
   * them.
   */
  readonly watermarkMs?: number
  /**
   * Default true: a write is durable when it resolves. False, for what can be computed again: a write that has
   * resolved outlives the process, but a failure of the machine may lose any number of the newest batches. It never
   * loses one and leaves a later one. The next opening finds what is left, which is no damage: `onDamage` and
   * `watermarkMs` do not apply.
   */
  readonly synced?: boolean
}

export interface Range {
  /** Inclusive lower bound. */
  readonly gte: string
  /** Exclusive upper bound. */
  readonly lt: string
}

export type StoreEntry = readonly [key: string, value: Uint8Array]

/** Behind every key that does not begin with it: the end of a range that has none. */
export const lastKey = '\u{10ffff}'

/** Collects the operations of one atomic write. Values are not copied: they must not change until the write is over. */
export interface WriteBatch {
  put(key: string, value: Uint8Array): void
  delete(key: string): void
}

export interface Store {
  /** Point read on the calling thread. Nothing that a read gives may be changed by its caller. */
  getSync(key: string): Uint8Array | undefined
  /** Several keys at one crossing to the thread pool; results in key order of the request. */
  getMany(keys: readonly string[]): Promise<(Uint8Array | undefined)[]>
  /**
   * Atomic write, durable when it resolves unless the store is opened with `synced: false`. Group commit: calls made
   * while one is in flight are written together by the next, in the order of the calls. `fill` runs synchronously,
   * once. Once a write has failed, every write queued behind it fails too (`StorageError`), so that what was computed
   * on top of it never lands; later calls are tried afresh. Whether a failed write itself (with those that went out
   * together with it) is found later is unknown: a failed fsync may have reached the disk.
   * @throws StorageError `overloaded` when the queue is full, `closed`, `full` or `io`
   */
  write(fill: (batch: WriteBatch) => void): Promise<void>
  /**
   * How many batches have failed. Raised before the writes in them and behind them reject, so that who builds
   * on writes in flight can tell at once, and not a microtask too late, that they will not land.
   */
  readonly failures: number
  /**
   * What was found damaged or missing when the store was opened, now or at an earlier time, in words; empty: nothing.
   */
  readonly damage: readonly string[]
  /** What was damaged has been dealt with: later openings report it no more. Durable when resolved. */
  forgetDamage(): Promise<void>
  /**
   * Reads the files beneath the store, which no read of a key checks.
   * @param contents everything; false: only what is needed to find a key, about a hundredth
   * @param rest called now and then; what it throws ends the check
   * @returns ranges in which keys or values are not what was written, or cannot be found; empty: everything is sound
   */
  checkFiles(contents: boolean, rest: () => Promise<void>): Promise<readonly Range[]>
  /** Pages of entries in key order; `values: false` gives empty values. Reads a snapshot as of the call. */
  iterate(range: Range, options?: IterateOptions): StoreIterator
  /** Deletes a range; as durable as a write when resolved. Not atomic, safe to repeat. */
  clear(range: Range): Promise<void>
  /** Approximate bytes on disk of a range. */
  approximateSize(range: Range): Promise<number>
  /** Rewrites a range to reclaim space; slow, in the background of the store. */
  compact(range: Range): Promise<void>
  close(): Promise<void>
}

export interface IterateOptions {
  readonly reverse?: boolean
  readonly limit?: number
  readonly values?: boolean
}

export interface StoreIterator {
  /** Up to `count` entries, empty at the end. */
  next(count: number): Promise<StoreEntry[]>
  close(): Promise<void>
}

export type StorageErrorCode = 'overloaded' | 'closed' | 'full' | 'io' | 'corrupt' | 'locked'

export class StorageError extends Error {
  readonly code: StorageErrorCode
  constructor(code: StorageErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'StorageError'
    this.code = code
  }
}
