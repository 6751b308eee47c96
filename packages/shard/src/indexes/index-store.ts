import type { IndexDefinition } from '@sectional/core'
import { indexId, PageBudget, SingleRun } from '@sectional/core'
import type { Clock, Log, Random, Storage, Store, Timer, WriteBatch } from '@sectional/runtime'
import { corruptionIn, damageIn, toReplicaError } from '../calls/call-guard.ts'
import { scanEntries } from '../records/entry-scan.ts'
import { directoryKeys, IndexKeys } from './index-keys.ts'
import {
  decodeDirectoryRecord, decodeNextPrefix, type DirectoryRecord, encodeDirectoryRecord, encodeNextPrefix, encodeState,
  type StoredState,
} from './index-records.ts'
import { defaultIndexOptions, type IndexOptions } from './index-options.ts'
import { NodePartCache } from './part-cache.ts'
import { SoughtRanges } from './place-search.ts'
import { ReductionCache } from './reduction-cache.ts'
import { rowPages } from './row-reader.ts'

export const indexStoreName = 'indexes'
const runBytes = 8
/** Milliseconds until the removal of dropped indexes is tried again after it has failed. */
const reclaimRetryMs = 60_000
/** Bytes of the pages of all scans of rows together (`PageBudget`). */
const scanPagesBytes = 64 * 1024 * 1024

/** An index in the directory. */
export interface StoredIndex extends DirectoryRecord { readonly keys: IndexKeys }

interface StoreParts {
  readonly storage: Storage
  readonly clock: Clock
  readonly log: Log
  readonly random: Random
  /** Absent values have their defaults. */
  readonly options?: Partial<IndexOptions>
  /** Called when an index, or the whole store, was found to be damaged. */
  readonly onDamage?: (what: 'index' | 'store') => void
}

/**
 * The store of all indexes of a node, and its directory. Writes are not synced (docs/decisions/0010-index-store.md): a
 * crash may lose the newest batches, which contain rows and the positions that belong to them.
 */
export class IndexStore {
  readonly store: Store
  /** Parts of indexes in memory. */
  readonly parts: NodePartCache
  /** The places of the ranges that queries of this node read. */
  readonly ranges = new SoughtRanges()
  /** Limits the pages of all scans of rows. */
  readonly scanPages = new PageBudget(rowPages, scanPagesBytes)
  /** Results of reductions of the indexes. */
  readonly reductions: ReductionCache
  /** Resolves when the store was found to be damaged. It must be closed, removed and opened anew then. */
  readonly damaged: Promise<void>
  readonly #markDamaged: () => void
  readonly #parts: StoreParts
  /** Drawn at each start, so that no version of an index is used again after a crash that loses batches. */
  readonly #run: string
  #versions = 0
  #nextPrefix: number
  /** The indexes by owner, and by id. */
  readonly #indexes = new Map<string, Map<string, StoredIndex>>()
  /**
   * Indexes that were replaced or dropped while no write has recorded it yet, by prefix. If such a write fails, the
   * next one records it, at the latest after `reclaimRetryMs`, so that the space of the index is reclaimed.
   */
  readonly #unrecorded = new Map<number, { readonly owner: string; readonly id: string }>()
  /** The prefixes of dropped indexes whose keys are not cleared yet. */
  readonly #dropped: Set<number>
  readonly #clearing = new SingleRun(() => this.#clearAll())
  #retry: Timer | undefined
  readonly #closed = new AbortController()
  #isDamaged = false

  private constructor(store: Store, nextPrefix: number, dropped: readonly number[], parts: StoreParts) {
    this.store = store
    this.reductions = new ReductionCache(parts.clock)
    this.parts = new NodePartCache(parts.options?.cacheBytes ?? defaultIndexOptions.cacheBytes)
    this.#run = Buffer.from(parts.random.bytes(runBytes)).toString('hex')
    this.#nextPrefix = nextPrefix
    this.#dropped = new Set(dropped)
    this.#parts = parts
    const { promise, resolve } = Promise.withResolvers<void>()
    this.damaged = promise
    this.#markDamaged = resolve
  }

  /**
   * Opens the store, and continues to clear the keys of indexes that were dropped earlier. A store that is damaged is
   * removed and begins anew, since every index can be built again.
   * @throws StorageError
   */
  static async open(parts: StoreParts): Promise<IndexStore> {
    try {
      return await IndexStore.#openFiles(parts)
    } catch (error) {
      if (damageIn(error) === undefined && corruptionIn(error) === undefined) throw error
      reportStore(parts, error)
      await parts.storage.remove(indexStoreName)
      return await IndexStore.#openFiles(parts)
    }
  }

  static async #openFiles(parts: StoreParts): Promise<IndexStore> {
    const store = await parts.storage.open(indexStoreName, { synced: false })
    try {
      return await IndexStore.#read(store, parts)
    } catch (error) {
      await store.close()
      throw error
    }
  }

  static async #read(store: Store, parts: StoreParts): Promise<IndexStore> {
    const dropped: number[] = []
    for await (const page of scanEntries(store, directoryKeys.allDropped())) {
      dropped.push(...page.map(([key]) => directoryKeys.readDropped(key)))
    }
    const nextPrefix = decodeNextPrefix(store.getSync(directoryKeys.nextPrefix()))
    const opened = new IndexStore(store, nextPrefix, dropped, parts)
    for await (const page of scanEntries(store, directoryKeys.indexes())) {
      for (const [key, value] of page) {
        const { owner, id } = directoryKeys.readIndex(key)
        const record = decodeDirectoryRecord(value)
        opened.#of(owner).set(id, { ...record, keys: new IndexKeys(record.prefix) })
      }
    }
    opened.#clear()
    return opened
  }

  /** Whether `damaged` has resolved. */
  get isDamaged(): boolean { return this.#isDamaged }

  /** Call this when the files of the store were found to be damaged. */
  reportDamage(error: unknown): void {
    if (this.#isDamaged || this.#closed.signal.aborted) return
    this.#isDamaged = true
    reportStore(this.#parts, error)
    this.#markDamaged()
  }

  /** Call this when records of an index were found to be damaged, once for each index. */
  reportDamagedIndex(definition: IndexDefinition, error: unknown): void {
    this.#parts.log.warn({ index: indexId(definition), error: String(error) },
      'an index is damaged; it is built again at the next query')
    this.#parts.onDamage?.('index')
  }

  /**
   * Reads all files of the store, and reports damage. LevelDB itself checks no checksums of its tables.
   * @param rest called from time to time; an error that it throws ends the check
   */
  async checkFiles(rest: () => Promise<void>): Promise<void> {
    const { length } = await this.store.checkFiles(true, rest)
    if (length > 0) this.reportDamage('a checksum in a table differs')
  }

  /** Returns the indexes of an owner by id. */
  indexesOf(owner: string): ReadonlyMap<string, StoredIndex> {
    return this.#indexes.get(owner) ?? new Map<string, StoredIndex>()
  }

  /** Returns the owners that have indexes. */
  owners(): readonly string[] {
    return [...this.#indexes.keys()]
  }

  /** Returns a version that no index of this store has had before. */
  newVersion(): string {
    return `${this.#run}-${++this.#versions}`
  }

  /**
   * Creates an index without rows, in place of the owner's index with that definition if there is one. Later writes to
   * the store are behind the creation, and fail if it fails.
   *
   * @param owner names the replica
   * @returns the keys of the index at once, and a promise that resolves when the index is written
   */
  create(
    owner: string, definition: IndexDefinition, indexerVersion: string, state: StoredState,
  ): { readonly keys: IndexKeys; readonly written: Promise<void> } {
    const id = indexId(definition)
    const indexes = this.#of(owner)
    const replaced = indexes.get(id)
    const prefix = this.#nextPrefix++
    const keys = new IndexKeys(prefix)
    const record: DirectoryRecord = { prefix, definition, indexerVersion }
    indexes.set(id, { ...record, keys })
    if (replaced !== undefined) this.#unrecorded.set(replaced.prefix, { owner, id })
    const written = this.#writeDirectory(batch => {
      batch.put(directoryKeys.nextPrefix(), encodeNextPrefix(this.#nextPrefix))
      batch.put(directoryKeys.index(owner, id), encodeDirectoryRecord(record))
      batch.put(keys.state(), encodeState(state))
    })
    return { keys, written }
  }

  /** Removes indexes of an owner. Resolves when they are removed from the directory; their keys are cleared later. */
  async drop(owner: string, ids: readonly string[]): Promise<void> {
    const indexes = this.#of(owner)
    const dropped = ids.flatMap(id => indexes.get(id) ?? [])
    if (dropped.length === 0 && this.#unrecorded.size === 0) return
    for (const { prefix, definition } of dropped) this.#unrecorded.set(prefix, { owner, id: indexId(definition) })
    for (const id of ids) indexes.delete(id)
    if (indexes.size === 0) this.#indexes.delete(owner)
    await this.#writeDirectory()
  }

  /** Writes to the directory, and records there which indexes were replaced or dropped. Then their keys are cleared. */
  async #writeDirectory(fill?: (batch: WriteBatch) => void): Promise<void> {
    try {
      await this.#recordDropped(fill)
    } catch (error) {
      this.#retryLater()
      throw error
    }
    this.#clear()
  }

  async #recordDropped(fill: (batch: WriteBatch) => void = () => {}): Promise<void> {
    const removed = [...this.#unrecorded]
    await this.store.write(batch => {
      for (const [prefix, { owner, id }] of removed) {
        // An index that has taken its place may have its entry in the directory by now.
        if (!this.indexesOf(owner).has(id)) batch.delete(directoryKeys.index(owner, id))
        batch.put(directoryKeys.dropped(prefix), new Uint8Array(0))
      }
      fill(batch)
    })
    for (const [prefix] of removed) {
      this.#unrecorded.delete(prefix)
      this.#dropped.add(prefix)
    }
  }

  /** Waits until the keys of all indexes dropped so far are cleared, or clearing them has failed. */
  async cleared(): Promise<void> {
    await this.#clearing.running
  }

  /** Close the indexes of all owners first. */
  async close(): Promise<void> {
    this.#closed.abort()
    this.#retry?.cancel()
    await this.#clearing.running
    await this.store.close()
  }

  #of(owner: string): Map<string, StoredIndex> {
    const found = this.#indexes.get(owner) ?? new Map<string, StoredIndex>()
    this.#indexes.set(owner, found)
    return found
  }

  #clear(): void {
    if (this.#dropped.size + this.#unrecorded.size > 0) this.#clearing.request()
  }

  #retryLater(): void {
    if (this.#closed.signal.aborted) return
    this.#retry ??= this.#parts.clock.setTimer(reclaimRetryMs, () => {
      this.#retry = undefined
      this.#clear()
    })
  }

  /** Clears dropped indexes, one after the other. What fails is tried again later, or at the next drop or start. */
  async #clearAll(): Promise<void> {
    if (this.#closed.signal.aborted) return
    try {
      if (this.#unrecorded.size > 0) await this.#recordDropped()
      for (const prefix of this.#dropped) {
        if (this.#closed.signal.aborted) return
        await this.store.clear(new IndexKeys(prefix).all(), this.#closed.signal)
        await this.store.write(batch => batch.delete(directoryKeys.dropped(prefix)))
        this.#dropped.delete(prefix)
      }
    } catch (error) {
      // The next start clears the rest.
      if (this.#closed.signal.aborted) return
      if (corruptionIn(error) !== undefined) return this.reportDamage(error)
      this.#parts.log.warn({ error: String(toReplicaError(error)), retryMs: reclaimRetryMs },
        'the space of dropped indexes could not be reclaimed; it is tried again')
      this.#retryLater()
    }
  }
}

function reportStore({ log, onDamage }: StoreParts, error: unknown): void {
  log.warn({ error: String(error) }, 'the store of indexes is damaged; it is removed, and all indexes are built again')
  onDamage?.('store')
}
