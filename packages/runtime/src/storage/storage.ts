/**
 * Ordered key-value stores with durable batches. Values are bytes. Keys are well-formed text in the order of its UTF-8
 * bytes; text passes to LevelDB and back at a fraction of the cost of a Buffer (docs/decisions/0001-storage-layout.md).
 * A binary key, such as the sort key of an index, has one character from U+0000 to U+00FF for each byte, which
 * preserves the order (docs/decisions/0010-index-store.md). `storage-level` is LevelDB on disk, and `storage-memory` a
 * double with simulated crashes; both run `storage-suite`.
 */
export interface Storage {
  /**
   * Opens the store of that name, and creates it if it does not exist. Names are `[a-z0-9-]+`. A store can be open only
   * once at a time.
   */
  open(name: string, options?: StoreOptions): Promise<Store>
  /** Returns whether a store of that name was ever opened, and so may contain something. @throws StorageError `io` */
  exists(name: string): Promise<boolean>
  /** Removes a store that is not open, with its contents. Does nothing when it does not exist. @throws StorageError */
  remove(name: string): Promise<void>
}

export interface StoreOptions {
  /** Bytes that are buffered in memory before a table is written; default 16 MiB. */
  readonly writeBufferBytes?: number
  /** Bytes of LevelDB's block cache; default 16 MiB. */
  readonly cacheBytes?: number
  /**
   * What `open` does when acknowledged writes of the store are missing or damaged: `refuse` (the default) rejects with
   * `corrupt`, at each attempt; `report` opens what remains, and `Store.damage` describes the damage.
   */
  readonly onDamage?: 'refuse' | 'report'
  /**
   * Milliseconds after which the loss of a write is detected even when no later write is left. With 0 the loss of every
   * acknowledged write is detected, which costs each batch a second fsync. Default 1000. A closed store detects the
   * loss of any write.
   */
  readonly watermarkMs?: number
  /**
   * Default true: a write is durable when it resolves. False is for data that can be recomputed: a resolved write
   * survives the end of the process, but a failure of the machine may lose any number of the newest batches, never a
   * batch while keeping a later one. The next opening uses what remains and does not treat the loss as damage;
   * `onDamage` and `watermarkMs` do not apply. It rejects with `corrupt`, at each attempt, when nothing certain
   * remains: the manifest or the parts of the tables by which keys are found are damaged, or files are missing. Remove
   * the store then.
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

/** A bound above every key that does not begin with it, for ranges without an end. */
export const lastKey = '\u{10ffff}'

/**
 * Collects the operations of one atomic write. Values are not copied: they must not change until the write has settled.
 */
export interface WriteBatch {
  put(key: string, value: Uint8Array): void
  /**
   * Like `put`, for a record that nearly every write replaces. When the writes of one group commit put the same key in
   * this way, only the last value is written. No other operation of the group may have that key.
   */
  putLatest(key: string, value: Uint8Array): void
  delete(key: string): void
}

export interface Store {
  /** Reads one key on the calling thread. The caller must not change the returned bytes. */
  getSync(key: string): Uint8Array | undefined
  /** Reads several keys in one crossing to the thread pool; the results are in the order of the request. */
  getMany(keys: readonly string[]): Promise<(Uint8Array | undefined)[]>
  /**
   * Writes atomically; durable when resolved, unless the store was opened with `synced: false`. Group commit: calls
   * that are made while a batch is in flight are written together as the next batch, in the order of the calls. `fill`
   * runs once and synchronously. When a batch fails, every write that is queued behind it fails too (`StorageError`),
   * so that writes which were computed on top of it never become durable; later calls are tried again. Whether the
   * failed batch itself is found later is unknown, because a failed fsync may have reached the disk.
   * @throws StorageError `overloaded` when the queue is full, `closed`, `full` or `io`
   */
  write(fill: (batch: WriteBatch) => void): Promise<void>
  /**
   * The number of batches that have failed. It is increased before the writes in and behind a failed batch reject.
   * Therefore code that builds on writes in flight can detect synchronously that they will not become durable.
   */
  readonly failures: number
  /** Descriptions of the damage that was found when the store was opened, now or earlier; empty when there is none. */
  readonly damage: readonly string[]
  /** Call this when the damage was handled; later openings no longer report it. Durable when resolved. */
  forgetDamage(): Promise<void>
  /**
   * Checks the files of the store, which reads of keys do not check.
   * @param contents whether to read everything, or only the parts that are needed to find a key (about a hundredth)
   * @param rest called from time to time; an error that it throws ends the check
   * @returns the ranges in which keys or values are damaged or cannot be found; empty when there is no damage
   */
  checkFiles(contents: boolean, rest: () => Promise<void>): Promise<readonly Range[]>
  /**
   * Returns an iterator over pages of entries in key order, on a snapshot as of the call. `values: false` gives empty
   * values.
   */
  iterate(range: Range, options?: IterateOptions): StoreIterator
  /**
   * Returns a view of the entries as of the call, for several reads of one state. While it is open, the store keeps
   * the values that it shows, so close it soon. Closing the store ends it.
   */
  snapshot(): StoreSnapshot
  /**
   * Deletes a range, in batches that are written like those of `write`, behind the writes that were called before. As
   * durable as a write when resolved. Not atomic, but safe to repeat. A key that is put into the range meanwhile may be
   * deleted or not.
   * @param signal ends the work between two batches
   * @throws StorageError like `write`; `closed` when the signal has aborted
   */
  clear(range: Range, signal?: AbortSignal): Promise<void>
  /** Returns the approximate number of bytes of a range on disk. */
  approximateSize(range: Range): Promise<number>
  /**
   * Rewrites a range to reclaim space. Slow; runs in the background of the store.
   * @param signal ends the work within a second or so
   * @throws StorageError `closed` when the signal has aborted
   */
  compact(range: Range, signal?: AbortSignal): Promise<void>
  close(): Promise<void>
}

export interface IterateOptions {
  readonly reverse?: boolean
  readonly limit?: number
  readonly values?: boolean
  /** A page ends with the entry that exceeds this many bytes; at most 1 MiB, which is the default. */
  readonly pageBytes?: number
  /** Whether all values are UTF-8, which makes it cheaper to read them. Others are returned with other bytes. */
  readonly text?: boolean
}

/** The entries of a store at one moment. After `close` its methods, and those of its iterators, fail. */
export interface StoreSnapshot {
  /** Reads one key on the calling thread. The caller must not change the returned bytes. */
  getSync(key: string): Uint8Array | undefined
  iterate(range: Range, options?: IterateOptions): StoreIterator
  /** May be called more than once. */
  close(): Promise<void>
}

export interface StoreIterator {
  /** Returns up to `count` entries, and fewer when their values are large; an empty page at the end. */
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
