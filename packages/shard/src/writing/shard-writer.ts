import { designPrefix } from '@sectional/core'
import { sleep, StorageError } from '@sectional/runtime'
import type { PartitionInfo, TimeSpan, TrailExtension, TrailPoint } from '@sectional/core'
import type { Clock, Counter, Histogram, Turns } from '@sectional/runtime'
import { withNothingDone } from '../calls/call-guard.ts'
import { HeldTrails } from './held-trails.ts'
import { DamagedRecordError } from '../records/damaged-record.ts'
import { DocumentRecord } from '../records/document-record.ts'
import type { LocalRecord } from '../records/local-record.ts'
import type { StoredPurge } from '../records/purge-records.ts'
import type { ReplicaState } from '../records/state-record.ts'
import type { FilterBudget } from '../reading/id-filter.ts'
import { KnownIds } from '../reading/known-ids.ts'
import type { ShardRecords } from '../reading/shard-records.ts'
import { StagedRecords } from './staged-records.ts'
import { WriteDraft } from './write-draft.ts'
import type { DraftBase, FilledDraft } from './write-draft.ts'

/**
 * Calls with more documents than this read their records ahead in one crossing to the thread pool; smaller calls read
 * them synchronously.
 */
const readAheadMin = 32
/**
 * Calls with more documents than this take turns with other long work of the node. Smaller calls that arrive in one
 * turn of the event loop share an fsync.
 */
const smallCall = 200
/** The first and the longest pause between two attempts to read a store that keeps failing. Milliseconds. */
const landedRetryMs = 1_000
const landedRetryMsMax = 30_000

export interface WriteMetrics {
  readonly commits: Counter
  readonly documents: Counter
  readonly commitDocuments: Histogram
}

/**
 * The write path of one shard. A call is decided synchronously on the calling thread, against the committed records and
 * those of batches in flight. Therefore edits of one document are serialized, and sequences have no gaps and no
 * duplicates. When a batch fails, every write that was decided on top of it fails too (`Store.write`), and the next
 * call starts from what the store then holds.
 */
export class ShardWriter implements DraftBase {
  readonly #records: ShardRecords
  readonly #clock: Clock
  readonly #turns: Turns
  readonly #metrics: WriteMetrics
  readonly #assertOpen: () => void
  readonly #onCommit: (documents: boolean, designs: boolean) => void
  /** The records of the batches in flight. */
  readonly #pending = new StagedRecords()
  readonly #heldTrails = new HeldTrails()
  /** The time spans as of the last staged batch; undefined when they must be read from the store. */
  #timeSpans: readonly TimeSpan[] | undefined
  readonly #ids: KnownIds
  /**
   * The records that calls have read ahead. Invariant: a batch that becomes durable updates its documents in each of
   * these maps.
   */
  readonly #aheads = new Set<Map<string, DocumentRecord | undefined>>()
  /** Set while a draft is being decided: the records that were read for it. */
  #fetched: Map<string, DocumentRecord | undefined> | undefined
  /**
   * The counters after the last staged batch, on which the next draft is based; undefined when no batch was staged
   * since the start or the last recovery. Invariant: its sequence is at least that of `#committed`.
   */
  #staged: ReplicaState | undefined
  /** The counters as of the last durable batch; undefined when they must be read from the store. */
  #committed: ReplicaState | undefined
  /** Settles with the last staged batch. A call that writes nothing but saw a pending record waits for it. */
  #last: Promise<void> | undefined
  /**
   * The value of `Store.failures` when the overlay was last valid. A higher value in the store means that all batches
   * in flight have failed.
   */
  #failuresSeen: number
  readonly #closing = new AbortController()
  /** True while a task waits for the store to recover in order to announce what it then holds. */
  #telling = false
  /** True from the failure of a batch until the store has recovered. */
  #unsettled = false
  #settling: Promise<void> | undefined
  /** The number of recoveries of the store for which this replica has waited. */
  #settlements = 0
  /** Set while a draft is being decided: whether it looked at a record that is not committed yet. */
  #sawPending = false

  constructor(
    records: ShardRecords, clock: Clock, turns: Turns, metrics: WriteMetrics, budget: FilterBudget,
    assertOpen: () => void, onCommit: (documents: boolean, designs: boolean) => void,
  ) {
    this.#clock = clock
    this.#turns = turns
    this.#records = records
    this.#ids = new KnownIds(records, budget)
    this.#failuresSeen = records.store.failures
    this.#metrics = metrics
    this.#assertOpen = assertOpen
    this.#onCommit = onCommit
  }

  /** After this, nothing is written. */
  close(): void {
    this.#closing.abort()
    this.#ids.release()
    this.#records.kept?.release()
  }

  /** Returns the counters as of the last batch that became durable. */
  committed(): ReplicaState {
    const unsettled = this.#mustSettle()
    if (this.#committed !== undefined) return this.#committed
    const state = this.#records.state()
    if (!unsettled) this.#committed = state
    return state
  }

  /**
   * Decides a write and resolves with the decision when everything that it wrote or relied upon is durable.
   * @param ids the ids of the documents that `decide` will read
   * @param decide runs once, synchronously
   */
  async write<T>(ids: readonly string[], decide: (draft: WriteDraft) => T): Promise<T> {
    this.#ids.start(this.committed().sequence === 0)
    const { decision, durable } = await this.#decided(ids, decide)
    await durable
    return decision
  }

  /**
   * Decides a write. A function of its own, so that the draft becomes garbage before its records are durable; otherwise
   * garbage collections would copy it meanwhile.
   */
  async #decided<T>(
    ids: readonly string[], decide: (draft: WriteDraft) => T,
  ): Promise<{ readonly decision: T; readonly durable: Promise<void> | undefined }> {
    const ahead = new Map<string, DocumentRecord | undefined>()
    let draft: WriteDraft
    let decision: T
    const settlements = this.#settlements
    try {
      if (ids.length > readAheadMin) {
        await this.#readAhead(ids, ahead)
        if (ids.length > smallCall) await this.#turns.pause()
      }
      while (this.#mustSettle()) await this.#settle()
      // Read again what was read before a recovery, because a batch that failed may be on the disk nevertheless.
      if (this.#settlements !== settlements) ahead.clear()
      this.#assertOpen()
      this.#fetched = ahead
      this.#sawPending = false
      draft = new WriteDraft(this, this.#staged ?? this.committed())
      decision = decide(draft)
    } catch (error) {
      throw withNothingDone(error)
    } finally {
      this.#aheads.delete(ahead)
      this.#fetched = undefined
    }
    return { decision, durable: draft.isEmpty() ? this.#sawPending ? this.#last : undefined : this.#commit(draft) }
  }

  document(id: string): DocumentRecord | undefined {
    if (this.#ids.lack(id)) return undefined
    const pending = this.#pending.documents.get(id)
    if (pending !== undefined) {
      this.#sawPending = true
      return pending instanceof DocumentRecord ? pending : undefined
    }
    if (this.#fetched?.has(id)) return this.#fetched.get(id)
    const record = this.#records.document(id)
    if (record === undefined) this.#ids.missed()
    this.#fetched?.set(id, record)
    return record
  }

  localDocument(id: string): LocalRecord | undefined {
    const pending = this.#pending.locals.get(id)
    if (pending !== undefined) this.#sawPending = true
    return pending ?? this.#records.localDocument(id)
  }

  checkpoint(history: string): number {
    const pending = this.#pending.checkpoints.get(history)
    if (pending !== undefined) this.#sawPending = true
    return pending ?? this.#records.checkpoint(history)
  }

  /** Returns the trail including the held extensions that are not written yet. */
  trail(history: string): readonly TrailPoint[] {
    return this.#heldTrails.extended(history, this.#storedTrail(history))
  }

  extendTrail(extension: TrailExtension): readonly TrailPoint[] | undefined {
    return this.#heldTrails.add(extension, this.#storedTrail(extension.history))
  }

  #storedTrail(history: string): readonly TrailPoint[] {
    return this.#pending.trails.get(history) ?? this.#records.trail(history)
  }

  purges(id: string): readonly StoredPurge[] {
    const pending = this.#pending.purges.get(id)
    if (pending !== undefined) this.#sawPending = true
    return pending ?? this.#records.purges(id)
  }

  purgeCheckpoint(history: string): number {
    const pending = this.#pending.purgeCheckpoints.get(history)
    if (pending !== undefined) this.#sawPending = true
    return pending ?? this.#records.purgeCheckpoint(history)
  }

  get partitioned(): boolean {
    return this.#records.partitioned
  }

  partition(partition: string): PartitionInfo {
    const pending = this.#pending.partitions.get(partition)
    if (pending !== undefined) this.#sawPending = true
    return pending ?? this.#records.partition(partition)
  }

  knownAttempt(id: string, revision: string): number | undefined {
    return this.#records.attempts.of(this.#records.keys.prefix, id, revision)
  }

  noteAttempt(id: string, revision: string, attempt: number): void {
    this.#records.attempts.note(this.#records.keys.prefix, id, revision, attempt)
  }

  forgetAttempt(id: string, revision: string): void {
    this.#records.attempts.forget(this.#records.keys.prefix, id, revision)
  }

  timeSpans(): readonly TimeSpan[] {
    return this.#timeSpans ??= this.#records.timeSpans()
  }

  bodyChunks(sequence: number): number {
    return this.#pending.largeBodies.get(sequence) ?? this.#records.bodyChunks(sequence)
  }

  async #readAhead(ids: readonly string[], ahead: Map<string, DocumentRecord | undefined>): Promise<void> {
    const unknown = [...new Set(ids)].filter(id => !this.#ids.lack(id))
    if (unknown.length <= readAheadMin) return
    this.#aheads.add(ahead)
    const records = await this.#records.documents(unknown)
    for (const [index, id] of unknown.entries()) {
      if (records[index] === undefined) this.#ids.missed()
      if (!ahead.has(id)) ahead.set(id, records[index])
    }
  }

  #commit(draft: WriteDraft): Promise<void> {
    const staged: FilledDraft[] = []
    const done = this.#records.store.write(batch => {
      staged.push(draft.fill(batch, this.#records.keys, this.#clock.now()))
    })
    const [filled] = staged
    if (filled === undefined) return done
    for (const [id] of filled.documents) this.#ids.add(id)
    this.#pending.add(filled)
    this.#records.kept?.staged(filled, filled.documents)
    if (filled.trail !== undefined) this.#heldTrails.written(filled.trail.history)
    if (filled.timeSpans !== undefined) this.#timeSpans = filled.timeSpans
    this.#staged = filled.state
    this.#last = done
    return this.#finish(done, filled)
  }

  async #finish(done: Promise<void>, filled: FilledDraft): Promise<void> {
    try {
      await done
    } catch (error) {
      void this.#tellOfLanded()
      throw error
    }
    this.#committed = filled.state
    this.#pending.landed(filled)
    this.#records.kept?.landed(filled)
    for (const ahead of this.#aheads) {
      for (const [id, record] of filled.documents) ahead.set(id, record instanceof DocumentRecord ? record : undefined)
    }
    this.#metrics.commits.add()
    this.#metrics.documents.add(filled.documents.length)
    this.#metrics.commitDocuments.observe(filled.documents.length)
    if (!filled.changed) return
    this.#onCommit(filled.documents.length > 0, filled.documents.some(([id]) => id.startsWith(designPrefix)))
  }

  /**
   * Announces a commit after a failed batch, because the batch may be on the disk nevertheless and peers must then
   * learn of it.
   */
  async #tellOfLanded(): Promise<void> {
    if (this.#telling) return
    this.#telling = true
    try {
      for (let pauseMs =
        landedRetryMs; !this.#closing.signal.aborted; pauseMs = Math.min(2 * pauseMs, landedRetryMsMax)) {
        if (await this.#tellOnce()) return
        await sleep(this.#clock, pauseMs, this.#closing.signal)
      }
    } finally {
      this.#telling = false
    }
  }

  /** Returns false when the disk still fails. */
  async #tellOnce(): Promise<boolean> {
    try {
      if (this.#mustSettle()) await this.#settle()
      // A listener asks for the shard's sequence, which must first be read from the disk.
      if (!this.#closing.signal.aborted) this.#onCommit(true, true)
      return true
    } catch (error) {
      if (error instanceof DamagedRecordError) return false
      if (!(error instanceof StorageError)) throw error
      return error.code === 'closed'
    }
  }

  /**
   * After any batch of the store failed, forgets what was staged, because all batches in flight failed with it.
   * Returns whether the store must recover first.
   */
  #mustSettle(): boolean {
    const { failures } = this.#records.store
    if (failures !== this.#failuresSeen) {
      this.#failuresSeen = failures
      this.#unsettled = true
      this.#pending.clear()
      this.#timeSpans = undefined
      this.#staged = undefined
      this.#committed = undefined
      this.#last = undefined
    }
    return this.#unsettled
  }

  /**
   * Waits for the store to recover. A batch that failed may be on the disk nevertheless (when its log record was
   * complete). An empty write resolves after recovery, so the counters are then read from the state that the store
   * keeps.
   */
  #settle(): Promise<void> {
    this.#settling ??= this.#records.store.write(() => {}).then(() => {
      this.#unsettled = false
      this.#settlements++
      this.#records.kept?.settled()
    }).finally(() => {
      this.#settling = undefined
    })
    return this.#settling
  }
}
