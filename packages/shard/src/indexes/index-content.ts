import type { ChangeRow, IndexDefinition, IndexState } from '@sectional/core'
import { compareUtf8, ReplicaError } from '@sectional/core'
import type { Turns, WriteBatch } from '@sectional/runtime'
import { sealed } from '@sectional/runtime'
import { corruptionIn, damageIn } from '../calls/call-guard.ts'
import { DamagedRecordError } from '../records/damaged-record.ts'
import {
  changesInParts, type CurrentDocument, type DocumentChange, documentChanges, lastOfEach, mapDocuments,
} from './document-changes.ts'
import { ExceededLimits } from './exceeded-limits.ts'
import { untilAborted } from './hosted-indexer.ts'
import { IndexKeys } from './index-keys.ts'
import { decodeState, encodeDocumentRows, encodeRow, encodeState, newState, type StoredState } from './index-records.ts'
import type { IndexStore, StoredIndex } from './index-store.ts'
import type { Indexer } from './indexer.ts'
import { IndexPartCache } from './part-cache.ts'
import { rowBytes, type StoredRow } from './row-reader.ts'
import { addDigest, digestText } from './rows-digest.ts'
import { RunRows } from './run-rows.ts'
import { buildSummaries } from './summary-build.ts'
import { type RowChange, type SummaryChanges, updateSummaries } from './summary-update.ts'
import { batchBytes, type TakenChanges, UnwrittenChanges } from './unwritten-changes.ts'

export interface ContentParts {
  readonly store: IndexStore
  readonly indexer: Indexer
  readonly turns: Turns
}

/**
 * From this number of rows and changes ahead on, a scan with many changes ahead removes the summaries and makes them
 * anew at its end. Below it, changing them is cheap enough.
 */
const summariesKeptBelow = 10_000
/** The changes ahead are many when they are more than this part of the rows. */
const manyChangesPart = 1 / 4
/** Bytes of new pages of summaries that are written together. */
const pageBatchBytes = 256 * 1024
const failureLengthMax = 1000

/**
 * The records of one index under one history of the replica. An index that begins anew gets other keys, and so a new
 * object. Each batch contains the changes of a page of documents, the summaries and the state after them; in the first
 * scan, those of several pages. A page with many bytes of rows makes several batches.
 */
export class IndexContent {
  readonly definition: IndexDefinition
  readonly keys: IndexKeys
  /** Parts of the newest state. */
  readonly cache: IndexPartCache
  readonly #parts: ContentParts
  /** The state in the store, unless `#mustReload`. */
  #state: StoredState
  /** What `state` has returned, and for which state. */
  #shown: { readonly of: StoredState; readonly state: IndexState }
  /** Resolves when the index is in the store. */
  readonly #created: Promise<void>
  /** True from the start of a write to its success: after a failure it is unknown whether the batch is in the store. */
  #mustReload = false
  /**
   * Whether the scan began without any records of documents. Then no document has rows before the scan reaches it,
   * since a scan lists a document once, or first a purge of it.
   */
  #isFirstScan = false
  /**
   * Changes that the first scan has read. Invariant: `#state` does not contain them, and later scans leave it empty. A
   * scan that fails drops them, so that the next one reads them again.
   */
  readonly #unwritten = new UnwrittenChanges()
  #exceeded = new ExceededLimits()
  /** No row has a larger value. Known while all rows were written by this object. */
  #valueBytesMax = Infinity
  readonly #ended = new AbortController()
  /** Its calls reject when the index was ended. */
  readonly #indexer: Indexer
  #broken = false

  private constructor(
    definition: IndexDefinition, keys: IndexKeys, state: StoredState, created: Promise<void>, parts: ContentParts,
  ) {
    this.definition = definition
    this.keys = keys
    this.cache = new IndexPartCache(parts.store.parts, state.version)
    this.#state = state
    this.#shown = { of: state, state: indexState(state) }
    this.#parts = parts
    this.#created = created
    this.#indexer = untilAborted(parts.indexer, this.#ended.signal)
    created.catch(() => { this.#broken = true })
  }

  /** Creates an index without rows, in place of the owner's index with that definition if there is one. */
  static create(owner: string, definition: IndexDefinition, history: string, parts: ContentParts): IndexContent {
    const { store, indexer } = parts
    const state = newState(history, store.newVersion())
    const { keys, written } = store.create(owner, definition, indexer.versionOf(definition), state)
    return new IndexContent(definition, keys, state, written, parts)
  }

  /** @throws StorageError, and DamagedRecordError when the state of the index is damaged */
  static load({ definition, keys }: StoredIndex, parts: ContentParts): IndexContent {
    const state = decodeState(parts.store.store.getSync(keys.state()))
    return new IndexContent(definition, keys, state, Promise.resolve(), parts)
  }

  get history(): string { return this.#state.history }
  get sequence(): number { return this.#state.sequence }
  get readSequence(): number { return this.#state.readSequence }
  /** Each short read needs it, so it is made once for each state. */
  get state(): IndexState {
    if (this.#shown.of !== this.#state) this.#shown = { of: this.#state, state: indexState(this.#state) }
    return this.#shown.state
  }

  /** The state in the store; undefined when the index cannot be read, or while a batch is being written. */
  get settled(): StoredState | undefined {
    return this.#mustReload || this.#broken || this.#ended.signal.aborted ? undefined : this.#state
  }

  /** Whether the records are damaged, or were never written. The index must begin anew. */
  get isBroken(): boolean { return this.#broken }

  /** Call this when a read or write of the index has failed. Damage makes the index, or the store, begin anew. */
  noteFailure(error: unknown): void {
    const { store } = this.#parts
    const damage = damageIn(error)
    const corruption = corruptionIn(error)
    if (corruption !== undefined) store.reportDamage(corruption)
    if (damage === undefined || this.#broken) return
    this.#broken = true
    store.reportDamagedIndex(this.definition, damage)
  }

  /** Resolves when the index is in the store and can be read. */
  async created(): Promise<void> {
    await this.#created
  }

  /** Refuses further writes, and ends calls of functions. Writes that have begun are completed. */
  end(): void {
    this.#ended.abort()
  }

  /** Call this before the changes are read. @param newest the sequence of the replica */
  beginScan(newest: number): Promise<void> {
    return this.#noting(() => this.#beginScan(newest))
  }

  /** Replaces the rows of changed documents by those that the map function gives now; deleted documents have none. */
  apply(rows: readonly ChangeRow[], signal: AbortSignal): Promise<void> {
    return this.#noting(() => this.#apply(rows, signal))
  }

  /** Records that the changes up to `newest` at least were read to their end, and summarises the rows. */
  complete(newest: number): Promise<void> {
    return this.#noting(() => this.#complete(newest))
  }

  async #noting(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      this.#unwritten.drop()
      this.noteFailure(error)
      throw error
    }
  }

  async #beginScan(newest: number): Promise<void> {
    await this.#created
    if (this.#mustReload) await this.#reload()
    const { height, rowCount, readSequence } = this.#state
    this.#unwritten.drop()
    this.#exceeded = new ExceededLimits()
    this.#isFirstScan = readSequence === 0
    if (this.#isFirstScan) this.#valueBytesMax = 0
    const ahead = newest - readSequence
    if (height > 0 && ahead > rowCount * manyChangesPart && rowCount + ahead >= summariesKeptBelow) {
      await this.#write({ ...this.#state, height: 0, hasRemains: true })
      this.cache.reset(this.#state.version)
    }
  }

  async #apply(page: readonly ChangeRow[], signal: AbortSignal): Promise<void> {
    const { store: { store }, turns: { background: turns } } = this.#parts
    const rows = lastOfEach(page)
    // Documents that are mapped together. When they were too many, the function has run in vain for the last ones.
    let most = rows.length
    for (let at = 0; at < rows.length;) {
      const asked = rows.slice(at, at + most)
      const mapped = await mapDocuments(this.#indexer, this.definition, asked, signal)
      most = mapped.length < asked.length ? mapped.length : 2 * most
      for (const end = at + mapped.length; at < end;) {
        const left = mapped.slice(at - end)
        const documents = await documentChanges(store, this.keys, left, this.#isFirstScan, turns)
        for (const part of changesInParts(documents, batchBytes)) {
          at += part.length
          await this.#take({ documents: part, readSequence: rows[at - 1]!.sequence })
        }
      }
      await this.#noteExceededLimits(mapped)
    }
  }

  /** Writes what was read before the build ends, so that the next one continues there. */
  async #noteExceededLimits(documents: readonly CurrentDocument[]): Promise<void> {
    try {
      this.#exceeded.note(documents)
    } catch (error) {
      await this.#writeUnwritten()
      throw error
    }
  }

  async #take(changes: TakenChanges): Promise<void> {
    if (!this.#isFirstScan) return this.#writeChanges(changes)
    this.#unwritten.add(changes.documents, changes.readSequence)
    if (this.#unwritten.isFull) await this.#writeUnwritten()
  }

  async #writeUnwritten(): Promise<void> {
    if (!this.#unwritten.isEmpty) await this.#writeChanges(this.#unwritten.take())
  }

  async #writeChanges({ documents, readSequence }: TakenChanges): Promise<void> {
    const changes = documents.flatMap(document => document.rows)
    for (const { value } of changes) this.#valueBytesMax = Math.max(this.#valueBytesMax, value?.length ?? 0)
    const { pages, height, rowCount, runs } = await this.#summaries(changes)
    const next: StoredState = {
      ...this.#state, height, readSequence,
      version: changes.length > 0 ? this.#parts.store.newVersion() : this.#state.version,
      ...totals(this.#state, documents),
    }
    if (rowCount !== undefined && rowCount !== next.rowCount) {
      throw new DamagedRecordError(`an index has ${rowCount} rows, and its documents list ${next.rowCount}`)
    }
    await this.#parts.turns.background.pause()
    await this.#write(next, batch => {
      for (const { place, value } of changes) put(batch, this.keys.row(place), value && encodeRow(place, value))
      for (const [key, page] of pages) put(batch, key, page)
      for (const document of documents) this.#putDocument(batch, document)
    })
    this.cache.changed(next.version, [
      ...[...pages.keys()].map(key => IndexKeys.readPage(key)), ...runs.map(({ place }) => ({ level: 0, place })),
    ])
    await this.#parts.turns.background.map(runs, ({ place, rows }) => this.#keepRun(place, rows))
  }

  async #complete(newest: number): Promise<void> {
    await this.#writeUnwritten()
    const sequence = Math.max(this.#state.readSequence, newest)
    const summaries = this.#state.height === 0 && this.#state.rowCount > 0 ? await this.#summariseAll() : {}
    await this.#write({ ...this.#state, ...summaries, sequence, readSequence: sequence })
  }

  async #summaries(changes: readonly RowChange[]): Promise<SummaryChanges> {
    const { height, version } = this.#state
    if (height === 0 || changes.length === 0) return { pages: new Map(), height, rowCount: undefined, runs: [] }
    const sorted = changes.toSorted((a, b) => compareUtf8(a.place, b.place))
    const { turns: { background: turns } } = this.#parts
    return updateSummaries({ ...this.#summaryParts, height }, turns, sorted, this.cache.ofVersion(version))
  }

  async #summariseAll(): Promise<Pick<StoredState, 'height' | 'hasRemains'>> {
    const { store: { store }, turns: { background: turns } } = this.#parts
    if (this.#state.hasRemains) await store.clear(this.keys.pages())
    // Runs of an attempt that failed may have other rows now.
    this.cache.reset(this.#state.version)
    const pages = new Map<string, Uint8Array>()
    let bytes = 0
    const flush = async (): Promise<void> => {
      await this.#write({ ...this.#state, hasRemains: true }, batch => {
        for (const [key, page] of pages) batch.put(key, page)
      })
      pages.clear()
      bytes = 0
    }
    const height = await buildSummaries(this.#summaryParts, turns, this.#valueBytesMax, async (key, page) => {
      pages.set(key, page)
      bytes += page.length
      if (bytes >= pageBatchBytes) await flush()
    }, (place, rows) => this.#keepRun(place, rows))
    await flush()
    return { height, hasRemains: false }
  }

  /** Keeps the rows of a run of the newest state in memory if there is room, so that queries find them there. */
  #keepRun(place: string, rows: readonly StoredRow[]): void {
    this.cache.offer(0, place, rows.reduce((sum, row) => sum + rowBytes(row), 0), () => {
      const run = new RunRows(rows)
      return [run, run.bytes]
    })
  }

  get #summaryParts() {
    const { store: { store: source } } = this.#parts
    return { source, keys: this.keys, definition: this.definition, indexer: this.#indexer }
  }

  #putDocument(batch: WriteBatch, { id, before, after, error }: DocumentChange): void {
    const isListed = after.rows.length > 0 || after.failed
    if (isListed) batch.put(this.keys.document(id), encodeDocumentRows(after))
    else if (before.rows.length > 0 || before.failed) batch.delete(this.keys.document(id))
    if (error !== undefined) batch.put(this.keys.failure(id), sealed(Buffer.from(error.slice(0, failureLengthMax))))
    else if (before.failed) batch.delete(this.keys.failure(id))
  }

  async #reload(): Promise<void> {
    const { store } = this.#parts.store
    // An empty write makes the store recover from the failed one, so that it shows what reached the disk.
    await store.write(() => {})
    this.#state = decodeState(store.getSync(this.keys.state()))
    this.cache.reset(this.#state.version)
    this.#mustReload = false
  }

  async #write(next: StoredState, fill: (batch: WriteBatch) => void = () => {}): Promise<void> {
    if (this.#ended.signal.aborted) throw new ReplicaError('closed', 'the index was replaced, dropped or closed')
    this.#mustReload = true
    await this.#parts.store.store.write(batch => {
      fill(batch)
      batch.put(this.keys.state(), encodeState(next))
    })
    this.#mustReload = false
    this.#state = next
  }
}

/** Returns the part of a state that the contract shows. */
export function indexState({ history, sequence, readSequence, digest, rowCount }: StoredState): IndexState {
  return { position: { history, sequence }, readSequence, version: digestText(digest), rowCount }
}

function totals(
  state: StoredState, documents: readonly DocumentChange[],
): Pick<StoredState, 'digest' | 'rowCount' | 'failedCount' | 'externalBytes' | 'activeBytes'> {
  let { digest, rowCount, failedCount, externalBytes, activeBytes } = state
  for (const change of documents) {
    const { before, after } = change
    if (change.digest !== undefined) digest = addDigest(digest, change.digest)
    rowCount += after.rows.length - before.rows.length
    failedCount += Number(after.failed) - Number(before.failed)
    externalBytes += change.externalBytes
    activeBytes += change.activeBytes
  }
  return { digest, rowCount, failedCount, externalBytes, activeBytes }
}

function put(batch: WriteBatch, key: string, value: Uint8Array | null): void {
  if (value === null) batch.delete(key)
  else batch.put(key, value)
}
