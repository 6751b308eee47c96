import { MemoryBlobDisk } from '../blobs/blob-store-memory.ts'
import type { Clock } from '../clock/clock.ts'
import { checkStoreName } from '../files/store-name.ts'
import { GroupCommitStore } from './group-commit-store.ts'
import type { BatchOperations } from './group-commit-store.ts'
import { SortedMap, type SortedSnapshot } from './sorted-map.ts'
import { lastKey, StorageError } from './storage.ts'
import type {
  IterateOptions, Range, Storage, Store, StoreEntry, StoreIterator, StoreOptions, StoreSnapshot,
} from './storage.ts'
import { WriteJournal } from './write-journal.ts'

const defaultWatermarkMs = 1000

/**
 * How a simulated disk misbehaves. The functions that concern batches are called once per batch, in the order of the
 * batches.
 */
export interface DiskFaults {
  /** Milliseconds until a batch is synced; with 0 or when absent, within the microtasks of the turn. Needs a clock. */
  readonly syncDelayMs?: (store: string) => number
  /** Fails the batch; nothing of it is written. */
  readonly failWrite?: (store: string) => 'full' | 'io' | undefined
  /**
   * Whether a batch that fails with `io` reached the log on the disk nevertheless. When absent, it did not. As with
   * LevelDB, the process that wrote it finds it when the store has recovered, and another one when it opens the store.
   */
  readonly landFailed?: (store: string) => boolean
  /** Fails the recovery of a store after a failed batch. */
  readonly failRecovery?: (store: string) => 'full' | 'io' | undefined
  /**
   * The maximum number of keys that the next batch of a clear deletes. With a small number, a crash or a failure can
   * leave a part of a small range.
   */
  readonly clearPageKeys?: (store: string) => number
  /**
   * Milliseconds that a read of a page or of several keys takes; what it finds was there at some moment in between.
   * Needs a clock.
   */
  readonly readDelayMs?: (store: string) => number
  /** Fails one read: of a page, of several keys, or of one key. */
  readonly failRead?: (store: string) => 'io' | 'corrupt' | undefined
  /** At a crash: whether the batch in flight reached the disk completely nevertheless. When absent, it is lost. */
  readonly keepUnsynced?: (store: string) => boolean
  /**
   * At a crash: how many of the newest `batches` of a store that was opened with `synced: false` are lost. When absent,
   * all of them are lost.
   */
  readonly loseNewest?: (store: string, batches: number) => number
}

/**
 * The number of batches of an unsynced store that a crash can lose. Older batches are in tables, which LevelDB syncs.
 */
const unsyncedBatchesMax = 100

/** The part that survives a crash: the synced contents of every store. Also records which stores are open. */
export class MemoryDisk {
  readonly blobs: MemoryBlobDisk
  readonly #stores = new Map<string, SortedMap>()
  readonly #openers = new Map<string, MemoryStore>()
  readonly #clock: Clock | undefined
  readonly #journals = new Map<string, WriteJournal>()
  readonly #damage = new Map<string, readonly string[]>()
  readonly #ruined = new Set<string>()
  /** The batch of each store that has failed and is in its log nevertheless. No process has read it yet. */
  readonly #landed = new Map<string, BatchOperations>()
  #journalBatches = 0
  #faults: DiskFaults = {}

  /** @param clock measures delayed syncs; without a clock every batch is synced within the turn */
  constructor(clock?: Clock, blobs = new MemoryBlobDisk()) {
    this.#clock = clock
    this.blobs = blobs
  }

  get faults(): DiskFaults {
    return this.#faults
  }

  setFaults(faults: DiskFaults): void {
    this.#faults = faults
  }

  /** Makes the next batch of any store fail; afterwards the previous faults apply again. */
  failNextWrite(code: 'full' | 'io'): void {
    const faults = this.#faults
    this.#faults = { ...faults, failWrite: () => { this.#faults = faults; return code } }
  }

  /** Returns another disk with the currently synced contents and no faults. @param clock measures its delayed syncs */
  copy(clock?: Clock): MemoryDisk {
    const copy = new MemoryDisk(clock, this.blobs.copy())
    for (const [name, data] of this.#stores) copy.#stores.set(name, data.copy())
    for (const [name, batch] of this.#landed) applyTo(copy.#stores.get(name)!, batch)
    for (const [name, damage] of this.#damage) copy.#damage.set(name, damage)
    return copy
  }

  /** @internal */
  holds(store: string): boolean {
    return this.#stores.has(store)
  }

  /** Returns the synced entries of a store. */
  entries(store: string): StoreEntry[] {
    const data = this.#stores.get(store)
    return data === undefined ? [] : [...data.snapshot().ascending('', lastKey)]
  }

  /** Returns a synced value of a store. */
  value(store: string, key: string): Uint8Array | undefined {
    return this.#stores.get(store)?.get(key)
  }

  /**
   * Changes a stored value, as failing hardware does. A store that is open sees the change at once.
   *
   * @param value the new value; undefined removes the entry
   */
  damage(store: string, key: string, value: Uint8Array | undefined): void {
    if (value === undefined) this.#stores.get(store)?.delete(key)
    else this.#stores.get(store)?.set(key, value)
  }

  /** Makes openings of a store with `synced: false` fail with `corrupt` until it is removed. */
  ruin(store: string): void {
    this.#ruined.add(store)
  }

  /**
   * Makes `loseBatches` able to undo up to this many of the newest batches of each store. Call it before stores are
   * opened.
   */
  keepJournal(batches: number): void {
    this.#journalBatches = batches
  }

  /** The number of batches of a store that `loseBatches` can undo. */
  journalLength(store: string): number {
    return this.#journals.get(store)?.length ?? 0
  }

  /**
   * Undoes batches of a closed store, as damage of its log does, with or without later batches that remain. The next
   * opening detects the loss. Does nothing when the loss could not be detected; this is never so for a write that was
   * acknowledged more than twice `watermarkMs` before the process ended.
   * @param from index of the first batch in the journal
   * @param to index after the last batch
   * @returns whether the batches were undone
   */
  loseBatches(store: string, from: number, to: number): boolean {
    if (this.#openers.has(store)) throw new Error(`the store ${store} is open`)
    const lost = this.#journals.get(store)?.lose(from, to) ?? false
    if (lost) this.#damage.set(store, ['batches of its log are missing (simulated)'])
    return lost
  }

  /** @internal */
  damageOf(store: string): readonly string[] {
    return this.#damage.get(store) ?? []
  }

  /** @internal */
  forgetDamage(store: string): void {
    this.#damage.delete(store)
  }

  /** @internal */
  journal(store: string): WriteJournal | undefined {
    return this.#journals.get(store)
  }

  /** The stores that a process has open; empty after a clean stop. */
  get openStores(): readonly string[] {
    return [...this.#openers.keys()]
  }

  /** @internal */
  attach(name: string, options: StoreOptions): MemoryStore {
    const { onDamage = 'refuse', watermarkMs = defaultWatermarkMs, synced = true } = options
    if (this.#openers.has(name)) throw new StorageError('locked', `the store ${name} is open already: close it first`)
    let data = this.#stores.get(name)
    if (data === undefined) this.#stores.set(name, data = new SortedMap())
    const damage = this.damageOf(name)
    const refused = synced ? damage.length > 0 && onDamage === 'refuse' : this.#ruined.has(name)
    if (refused) {
      throw new StorageError('corrupt', `the store ${name} is damaged: ${damage.join('; ')}`)
    }
    // Opening a store moves its log into tables, so the journal starts empty.
    if (this.#journalBatches > 0) this.#journals.set(name, new WriteJournal(data, this.#journalBatches))
    const unsynced = synced ? undefined : new WriteJournal(data, unsyncedBatchesMax)
    const store = new MemoryStore({ name, data, disk: this, clock: this.#clock, watermarkMs, unsynced })
    this.#openers.set(name, store)
    return store
  }

  /** @internal */
  remove(name: string): void {
    if (this.#openers.has(name)) throw new StorageError('locked', `the store ${name} is open: close it first`)
    const kept = [this.#stores, this.#journals, this.#damage, this.#ruined, this.#landed]
    for (const records of kept) records.delete(name)
  }

  /** @internal Keeps a batch that has failed until `takeLanded`. */
  land(store: string, batch: BatchOperations): void {
    this.#landed.set(store, batch)
  }

  /** @internal Returns the batch that the replay of the store's log finds. */
  takeLanded(store: string): BatchOperations | undefined {
    const batch = this.#landed.get(store)
    this.#landed.delete(store)
    return batch
  }

  /** @internal */
  detach(name: string, store: MemoryStore): void {
    if (this.#openers.get(name) === store) this.#openers.delete(name)
  }
}

/**
 * The storage of one process on a disk. After `crash` every call fails; another `MemoryStorage` on the same disk finds
 * what was synced.
 */
export class MemoryStorage implements Storage {
  readonly disk: MemoryDisk
  readonly #stores = new Set<MemoryStore>()
  #crashed = false

  constructor(disk: MemoryDisk = new MemoryDisk()) {
    this.disk = disk
  }

  async open(name: string, options: StoreOptions = {}): Promise<Store> {
    checkStoreName(name)
    if (this.#crashed) throw new StorageError('closed', 'this storage was revoked')
    const store = this.disk.attach(name, options)
    this.#stores.add(store)
    return store
  }

  async exists(name: string): Promise<boolean> {
    checkStoreName(name)
    return this.disk.holds(name)
  }

  async remove(name: string): Promise<void> {
    checkStoreName(name)
    if (this.#crashed) throw new StorageError('closed', 'this storage was revoked')
    this.disk.remove(name)
  }

  /**
   * Simulates a power failure: unsynced batches are lost, and all handles are closed. Returns the storage of the next
   * process.
   */
  crash(): MemoryStorage {
    this.#crashed = true
    for (const store of this.#stores) store.crash()
    this.#stores.clear()
    return new MemoryStorage(this.disk)
  }
}

interface MemoryStoreParts {
  readonly name: string
  readonly data: SortedMap
  readonly disk: MemoryDisk
  readonly clock: Clock | undefined
  readonly watermarkMs: number
  /** The batches that a crash can undo; absent when the store is synced. */
  readonly unsynced: WriteJournal | undefined
}

class MemoryStore extends GroupCommitStore {
  readonly #data: SortedMap
  readonly #disk: MemoryDisk
  readonly #clock: Clock | undefined
  readonly #watermarkMs: number
  readonly #unsynced: WriteJournal | undefined
  #crashed = false
  readonly #pauses = new Set<() => void>()
  /** The batch that is not synced yet. */
  #inFlight: { readonly operations: BatchOperations; readonly settle: (error?: StorageError) => void } | undefined

  constructor({ name, data, disk, clock, watermarkMs, unsynced }: MemoryStoreParts) {
    super(name, queueMicrotask)
    this.#unsynced = unsynced
    this.#data = data
    this.#disk = disk
    this.#clock = clock
    this.#watermarkMs = watermarkMs
  }

  override get damage(): readonly string[] {
    return this.#unsynced === undefined ? this.#disk.damageOf(this.name) : []
  }

  protected override async _forgetDamage(): Promise<void> {
    this.#assertAlive()
    this.#disk.forgetDamage(this.name)
  }

  protected override async _checkFiles(): Promise<readonly Range[]> {
    return []
  }

  crash(): void {
    if (this.#crashed) return
    this.#crashed = true
    // The watermark is written within two intervals.
    this.#disk.journal(this.name)?.cover(this.#now() - 2 * this.#watermarkMs)
    const error = new StorageError('closed', `the store ${this.name} was revoked`)
    const lost = this.#inFlight
    this.#applyLanded()
    if (lost !== undefined && this.#disk.faults.keepUnsynced?.(this.name) === true) this.#apply(lost.operations, false)
    this.#loseNewest()
    this.abandon(error)
    lost?.settle(error)
    for (const end of [...this.#pauses]) end()
    this.#disk.detach(this.name, this)
  }

  #loseNewest(): void {
    const { length } = this.#unsynced ?? []
    if (length > 0) this.#unsynced!.loseNewest(this.#disk.faults.loseNewest?.(this.name, length) ?? length)
  }

  protected override _getSync(key: string): Uint8Array | undefined {
    this.#assertReadable()
    return this.#data.get(key)
  }

  protected override async _getMany(keys: readonly string[]): Promise<(Uint8Array | undefined)[]> {
    const delayMs = this.#readDelayMs()
    if (delayMs > 0) {
      await this.#pause(delayMs / 2)
      this.#assertAlive()
    }
    this.#assertReadable()
    const values = keys.map(key => this.#data.get(key))
    if (delayMs > 0) await this.#pause(delayMs / 2)
    return values
  }

  #readDelayMs(): number {
    return this.#disk.faults.readDelayMs?.(this.name) ?? 0
  }

  protected override async _writeBatch(operations: BatchOperations): Promise<void> {
    this.#assertAlive()
    const failure = this.#disk.faults.failWrite?.(this.name)
    const delayMs = this.#unsynced === undefined ? this.#disk.faults.syncDelayMs?.(this.name) ?? 0 : 0
    await new Promise<void>((resolve, reject) => {
      const settle = (error?: StorageError): void => {
        this.#inFlight = undefined
        timer?.cancel()
        if (error === undefined) resolve()
        else reject(error)
      }
      const land = (): void => {
        if (this.#crashed) return
        if (failure === undefined) this.#apply(operations, this.#watermarkMs === 0)
        else if (failure === 'io' && this.#disk.faults.landFailed?.(this.name) === true) {
          this.#disk.land(this.name, operations)
        }
        settle(
          failure && new StorageError(
            failure, failure === 'full' ? 'No space left on device (simulated)' : 'Input/output error (simulated)',
          ),
        )
      }
      this.#inFlight = { operations, settle }
      const timer = delayMs > 0 ? this.#clock?.setTimer(delayMs, land) : undefined
      if (timer === undefined) queueMicrotask(land)
    })
  }

  protected override _iterate(range: Range, options: IterateOptions): StoreIterator {
    return this.#iterator(this.#data.snapshot(), range, options, () => {
      this.#assertAlive()
      this.#assertReadable()
    })
  }

  protected override _snapshot(): StoreSnapshot {
    const snapshot = this.#data.snapshot()
    let closed = false
    const assertReadable = (): void => {
      if (closed) throw new StorageError('closed', 'the snapshot is closed')
      this.#assertAlive()
      this.#assertReadable()
    }
    return {
      getSync: key => {
        assertReadable()
        return snapshot.get(key)
      },
      iterate: (range, options = {}) => {
        assertReadable()
        return this.#iterator(snapshot, range, options, assertReadable)
      },
      close: async () => { closed = true },
    }
  }

  #iterator(
    snapshot: SortedSnapshot, range: Range,
    { reverse = false, limit = Infinity, values = true, text = false, pageBytes = Infinity }: IterateOptions,
    assertReadable: () => void,
  ): StoreIterator {
    const entries = reverse ? snapshot.descending(range.gte, range.lt) : snapshot.ascending(range.gte, range.lt)
    const delay = (): Promise<void> | undefined => {
      const delayMs = this.#readDelayMs()
      return delayMs > 0 ? this.#pause(delayMs) : undefined
    }
    const asText = (value: Uint8Array): Uint8Array => Buffer.from(Buffer.from(value).toString())
    const bytesOf = !values ? () => emptyBytes : text ? asText : undefined
    const limits = { entries: limit < 0 ? Infinity : limit, pageBytes }
    return new MemoryStoreIterator(entries, limits, bytesOf, assertReadable, delay)
  }

  protected override _clearPageKeys(): number {
    return Math.min(super._clearPageKeys(), this.#disk.faults.clearPageKeys?.(this.name) ?? Number.POSITIVE_INFINITY)
  }

  /** Waits; ends early at a crash. */
  #pause(ms: number): Promise<void> {
    return new Promise(resolve => {
      const end = (): void => {
        timer?.cancel()
        this.#pauses.delete(end)
        resolve()
      }
      this.#pauses.add(end)
      const timer = this.#clock?.setTimer(ms, end)
      if (timer === undefined) queueMicrotask(end)
    })
  }

  protected override async _approximateSize(range: Range): Promise<number> {
    let bytes = 0
    for (const [key, value] of this.#data.snapshot().ascending(range.gte, range.lt)) bytes += key.length + value.length
    return bytes
  }

  protected override async _compactionBounds(): Promise<readonly string[]> {
    return []
  }

  protected override async _compact(): Promise<void> {}

  protected override async _close(): Promise<void> {
    this.#crashed = true
    this.#applyLanded()
    this.#disk.journal(this.name)?.cover(Number.POSITIVE_INFINITY)
    this.#disk.detach(this.name, this)
  }

  protected override async _recover(): Promise<void> {
    this.#assertAlive()
    const failure = this.#disk.faults.failRecovery?.(this.name)
    if (failure !== undefined) {
      throw new StorageError(failure, `the store ${this.name} cannot be opened again (simulated)`)
    }
    this.#applyLanded()
  }

  protected override _toStorageError(error: unknown): StorageError {
    return error instanceof StorageError ? error : new StorageError('io', String(error), { cause: error })
  }

  #now(): number {
    return this.#clock?.monotonic() ?? 0
  }

  #apply(operations: BatchOperations, covered: boolean): void {
    this.#disk.journal(this.name)?.add(operations, this.#now(), covered)
    this.#unsynced?.add(operations, this.#now(), false)
    applyTo(this.#data, operations)
  }

  #applyLanded(): void {
    const landed = this.#disk.takeLanded(this.name)
    if (landed !== undefined) this.#apply(landed, false)
  }

  #assertReadable(): void {
    const failure = this.#disk.faults.failRead?.(this.name)
    if (failure !== undefined) {
      throw new StorageError(
        failure, failure === 'io' ? 'Input/output error (simulated)' : 'Checksum mismatch (simulated)',
      )
    }
  }

  #assertAlive(): void {
    if (this.#crashed) throw new StorageError('closed', `the store ${this.name} is closed`)
  }
}

function applyTo(data: SortedMap, { keys, values }: BatchOperations): void {
  for (const [index, key] of keys.entries()) {
    const value = values[index] ?? null
    if (value === null) data.delete(key)
    else data.set(key, new Uint8Array(value))
  }
}

const emptyBytes = new Uint8Array(0)

class MemoryStoreIterator implements StoreIterator {
  readonly #entries: Generator<StoreEntry, void, undefined>
  readonly #bytesOf: ((value: Uint8Array) => Uint8Array) | undefined
  readonly #assertAlive: () => void
  readonly #delay: () => Promise<void> | undefined
  readonly #pageBytes: number
  #left: number
  #closed = false

  /** @param bytesOf returns what is given in place of a value; undefined to give the value */
  constructor(
    entries: Generator<StoreEntry, void, undefined>,
    limits: { readonly entries: number; readonly pageBytes: number },
    bytesOf: ((value: Uint8Array) => Uint8Array) | undefined, assertAlive: () => void,
    delay: () => Promise<void> | undefined,
  ) {
    this.#delay = delay
    this.#entries = entries
    this.#left = limits.entries
    this.#pageBytes = limits.pageBytes
    this.#bytesOf = bytesOf
    this.#assertAlive = assertAlive
  }

  async next(count: number): Promise<StoreEntry[]> {
    if (this.#closed) throw new StorageError('closed', 'the iterator is closed')
    const delay = this.#delay()
    if (delay !== undefined) await delay
    this.#assertAlive()
    const page: StoreEntry[] = []
    for (let bytes = 0; page.length < count && this.#left > 0 && bytes <= this.#pageBytes;) {
      const next = this.#entries.next()
      if (next.done === true) break
      this.#left--
      const [key, value] = next.value
      bytes += value.length
      page.push(this.#bytesOf === undefined ? next.value : [key, this.#bytesOf(value)])
    }
    return page
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#entries.return()
  }
}
