import { StorageError } from './storage.ts'
import type { IterateOptions, Range, Store, StoreIterator, StoreSnapshot, WriteBatch } from './storage.ts'

/** A group with this many operations or bytes takes no further call; a single call may exceed the limits. */
const groupOperationsMax = 8192
const groupBytesMax = 4 * 1024 * 1024
/** When this many operations or bytes are waiting, `write` rejects with `overloaded`. */
const queuedOperationsMax = 128 * 1024
export const queuedBytesMax = 64 * 1024 * 1024
/** `clear` deletes up to this many keys in one batch, so that the writes beside it need not wait long. */
export const clearPageKeys = 250

/** The operations of one batch: `values[i]` belongs to `keys[i]`, and null deletes the key. */
export interface BatchOperations {
  readonly keys: readonly string[]
  readonly values: readonly (Uint8Array | null)[]
  readonly bytes: number
  /**
   * Releases the keys and values after an implementation has copied them. Otherwise they would stay in memory until the
   * batch is durable.
   */
  release(): void
}

/** The result of one group, for metrics. */
export interface GroupObservation {
  /** The number of calls that were written together. */
  readonly writes: number
  readonly operations: number
  readonly bytes: number
  readonly failed: boolean
}

export interface GroupObserver {
  /**
   * Called when a group is about to be written. Calls the returned function when the group is durable or has failed.
   */
  begin(store: string): (group: GroupObservation) => void
}

interface Waiter { readonly resolve: () => void; readonly reject: (error: unknown) => void }

class WriteGroup implements WriteBatch, BatchOperations {
  readonly keys: string[] = []
  readonly values: (Uint8Array | null)[] = []
  readonly waiters: Waiter[] = []
  bytes = 0
  /** The index in `keys` of each key that `putLatest` received. */
  readonly #latest = new Map<string, number>()
  /** What `putLatest` replaced since the last `begin`: the index, and the value before. */
  readonly #replaced: [index: number, value: Uint8Array][] = []
  #lengthBefore = 0
  #bytesBefore = 0

  put(key: string, value: Uint8Array): void {
    this.keys.push(key)
    this.values.push(value)
    this.bytes += key.length + value.length
  }

  putLatest(key: string, value: Uint8Array): void {
    const index = this.#latest.get(key)
    if (index === undefined) {
      this.#latest.set(key, this.keys.length)
      this.put(key, value)
      return
    }
    const before = this.values[index]!
    this.#replaced.push([index, before])
    this.values[index] = value
    this.bytes += value.length - before.length
  }

  delete(key: string): void {
    this.keys.push(key)
    this.values.push(null)
    this.bytes += key.length
  }

  isFull(): boolean {
    return this.keys.length >= groupOperationsMax || this.bytes >= groupBytesMax
  }

  /** Begins the operations of one call, which `undo` can take back. */
  begin(): void {
    this.#lengthBefore = this.keys.length
    this.#bytesBefore = this.bytes
    this.#replaced.length = 0
  }

  /** Takes back all operations since the last `begin`. */
  undo(): void {
    for (const [index, value] of this.#replaced.toReversed()) this.values[index] = value
    for (const [key, index] of this.#latest) {
      if (index >= this.#lengthBefore) this.#latest.delete(key)
    }
    this.#truncate(this.#lengthBefore, this.#bytesBefore)
  }

  release(): void {
    this.#truncate(0, 0)
  }

  #truncate(length: number, bytes: number): void {
    this.keys.length = length
    this.values.length = length
    this.bytes = bytes
  }
}

/**
 * A store that writes in groups: calls that are made while a batch is in flight are written together as the next batch.
 * Implementations provide the methods that begin with an underscore. Those need not check arguments or whether the
 * store is open, and may reject with any error that `_toStorageError` can convert.
 */
export abstract class GroupCommitStore implements Store {
  protected readonly name: string
  readonly #pause: (callback: () => void) => void
  readonly #observer: GroupObserver | undefined
  /** The groups that wait to be written, oldest first. Only the last one takes further calls. */
  readonly #queue: WriteGroup[] = []
  /** The number of operations in `#queue`; `#queuedBytes` is the number of their bytes. */
  #queuedOperations = 0
  #queuedBytes = 0
  /** The error of every further call; undefined while the store is open. */
  #closedBy: StorageError | undefined
  #closing: Promise<void> | undefined
  /** Set while `#queue` is being written; resolves when it is empty. */
  #drained: Promise<void> | undefined
  /** True from the failure of a batch until `_recover` has succeeded. */
  #mustRecover = false
  #failures = 0

  /** @param pause calls back soon; writes until then join the group that is about to be written */
  constructor(name: string, pause: (callback: () => void) => void, observer?: GroupObserver) {
    this.name = name
    this.#pause = pause
    this.#observer = observer
  }

  protected abstract _getSync(key: string): Uint8Array | undefined
  protected abstract _getMany(keys: readonly string[]): Promise<(Uint8Array | undefined)[]>
  /**
   * Atomic. When the store is synced, the batch is durable when this resolves. Never called while another batch is in
   * flight.
   */
  protected abstract _writeBatch(operations: BatchOperations): Promise<void>
  protected abstract _iterate(range: Range, options: IterateOptions): StoreIterator
  /** The snapshot throws and rejects with StorageError only. */
  protected abstract _snapshot(): StoreSnapshot
  /** The maximum number of keys that the next batch of a `clear` deletes. */
  protected _clearPageKeys(): number {
    return clearPageKeys
  }

  protected abstract _approximateSize(range: Range): Promise<number>
  /** Returns keys in ascending order that divide a range into parts, each of which is compacted in a short time. */
  protected abstract _compactionBounds(range: Range): Promise<readonly string[]>
  protected abstract _compact(range: Range): Promise<void>
  /** @param afterFailure whether nothing may be written any more, because a batch has failed without a recovery */
  protected abstract _close(afterFailure: boolean): Promise<void>
  /** Called before the first batch after a failed one; makes the store ready to take batches again. */
  protected abstract _recover(): Promise<void>
  protected abstract _toStorageError(error: unknown): StorageError
  protected abstract _forgetDamage(): Promise<void>
  protected abstract _checkFiles(contents: boolean, rest: () => Promise<void>): Promise<readonly Range[]>

  abstract get damage(): readonly string[]

  async forgetDamage(): Promise<void> {
    this.#assertOpen()
    await this.#mapped(this._forgetDamage())
  }

  async checkFiles(contents: boolean, rest: () => Promise<void>): Promise<readonly Range[]> {
    this.#assertOpen()
    return await this._checkFiles(contents, rest)
  }

  get failures(): number {
    return this.#failures
  }

  getSync(key: string): Uint8Array | undefined {
    this.#assertOpen()
    try {
      return this._getSync(key)
    } catch (error) {
      throw this._toStorageError(error)
    }
  }

  async getMany(keys: readonly string[]): Promise<(Uint8Array | undefined)[]> {
    this.#assertOpen()
    if (keys.length === 0) return []
    return await this.#mapped(this._getMany(keys))
  }

  write(fill: (batch: WriteBatch) => void): Promise<void> {
    if (this.#closedBy !== undefined) return Promise.reject(this.#closedBy)
    if (this.#queuedOperations >= queuedOperationsMax || this.#queuedBytes >= queuedBytesMax) {
      const waiting = `${this.#queuedOperations} operations (${this.#queuedBytes} bytes) wait to be written`
      return Promise.reject(new StorageError(
        'overloaded', `${waiting}; the limits are ${queuedOperationsMax} and ${queuedBytesMax}`,
      ))
    }
    const group = this.#openGroup()
    const length = group.keys.length
    const bytes = group.bytes
    group.begin()
    try {
      fill(group)
    } catch (error) {
      group.undo()
      if (group.waiters.length === 0) this.#queue.pop()
      return Promise.reject(error)
    }
    this.#queuedOperations += group.keys.length - length
    this.#queuedBytes += group.bytes - bytes
    return new Promise((resolve, reject) => {
      group.waiters.push({ resolve, reject })
      this.#drained ??= this.#drain()
    })
  }

  iterate(range: Range, options: IterateOptions = {}): StoreIterator {
    this.#assertOpen()
    try {
      return this._iterate(range, options)
    } catch (error) {
      throw this._toStorageError(error)
    }
  }

  snapshot(): StoreSnapshot {
    this.#assertOpen()
    try {
      return this._snapshot()
    } catch (error) {
      throw this._toStorageError(error)
    }
  }

  async clear({ gte, lt }: Range, signal?: AbortSignal): Promise<void> {
    // Wait for the writes before, and recover if one has failed: what the disk has of it can be found only then.
    await this.write(() => {})
    let from = gte
    for (;;) {
      this.#assertWanted(signal)
      const keys = await this.#nextKeys({ gte: from, lt })
      if (keys.length === 0) return
      await this.write(batch => { for (const key of keys) batch.delete(key) })
      from = `${keys.at(-1)}\0`
    }
  }

  async #nextKeys(range: Range): Promise<string[]> {
    const iterator = this.iterate(range, { values: false, limit: this._clearPageKeys() })
    try {
      return (await iterator.next(clearPageKeys)).map(([key]) => key)
    } catch (error) {
      const mapped = this._toStorageError(error)
      if (mapped.code !== 'closed') throw mapped
      // A recovery ends the iterators of a store that stays open.
      throw this.#closedBy ?? new StorageError('io', `the store ${this.name} was opened again`, { cause: error })
    } finally {
      await iterator.close()
    }
  }

  async approximateSize(range: Range): Promise<number> {
    this.#assertOpen()
    return await this.#mapped(this._approximateSize(range))
  }

  async compact(range: Range, signal?: AbortSignal): Promise<void> {
    let gte = range.gte
    for (const lt of [...await this.#mapped(this._compactionBounds(range)), range.lt]) {
      if (this.#mustRecover) await this.write(() => {})
      this.#assertOpen()
      this.#assertWanted(signal)
      await this.#mapped(this._compact({ gte, lt }))
      gte = lt
    }
  }

  /** Refuses new writes at once and waits for the accepted ones. */
  close(): Promise<void> {
    this.#closedBy ??= new StorageError('closed', `the store ${this.name} is closed`)
    this.#closing ??= (this.#drained ?? Promise.resolve()).then(() => this.#mapped(this._close(this.#mustRecover)))
    return this.#closing
  }

  /** Refuses every call from now on and fails the waiting writes. Used by simulated crashes and revoked runtimes. */
  protected abandon(error: StorageError): void {
    this.#closedBy = error
    this.#closing ??= Promise.resolve()
    this.#failQueue(error)
  }

  #openGroup(): WriteGroup {
    const last = this.#queue.at(-1)
    if (last !== undefined && !last.isFull()) return last
    const group = new WriteGroup()
    this.#queue.push(group)
    return group
  }

  async #drain(): Promise<void> {
    while (this.#queue.length > 0) {
      await new Promise<void>(resolve => this.#pause(resolve))
      const group = this.#queue.shift()
      if (group === undefined) break
      const { keys: { length: operations }, bytes } = group
      this.#queuedOperations -= operations
      this.#queuedBytes -= bytes
      const observe = this.#observer?.begin(this.name)
      const failure = await this.#writeGroup(group)
      observe?.({ writes: group.waiters.length, operations, bytes, failed: failure !== undefined })
      if (failure === undefined) {
        for (const waiter of group.waiters) waiter.resolve()
      } else {
        this.#failures++
        for (const waiter of group.waiters) waiter.reject(failure)
        this.#failQueue(failure)
      }
    }
    this.#drained = undefined
  }

  async #writeGroup(group: WriteGroup): Promise<StorageError | undefined> {
    try {
      if (this.#mustRecover) {
        await this._recover()
        this.#mustRecover = false
      }
      if (group.keys.length > 0) await this._writeBatch(group)
      return undefined
    } catch (error) {
      this.#mustRecover = true
      return this._toStorageError(error)
    }
  }

  #failQueue(error: StorageError): void {
    const groups = this.#queue.splice(0)
    this.#queuedOperations = 0
    this.#queuedBytes = 0
    for (const group of groups) {
      for (const waiter of group.waiters) waiter.reject(error)
    }
  }

  #assertOpen(): void {
    if (this.#closedBy !== undefined) throw this.#closedBy
  }

  #assertWanted(signal: AbortSignal | undefined): void {
    if (signal?.aborted === true) throw new StorageError('closed', `work on a range of ${this.name} was ended`)
  }

  async #mapped<T>(promise: Promise<T>): Promise<T> {
    try {
      return await promise
    } catch (error) {
      throw this._toStorageError(error)
    }
  }
}
