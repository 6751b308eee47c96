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

/** More document records than this are read ahead in one crossing to the thread pool; fewer on the spot. */
const readAheadMin = 32
/** Larger calls take turns with other long work of this node; smaller ones in one turn share an fsync. */
const smallCall = 200
/** Between two looks at a store that goes on failing: at first, and at most. Milliseconds. */
const landedRetryMs = 1_000
const landedRetryMsMax = 30_000

export interface WriteMetrics {
  readonly commits: Counter
  readonly documents: Counter
  readonly commitDocuments: Histogram
}

/**
 * The write path of one shard. A call is decided at once, on the calling thread, against what is committed and
 * what the batches in flight will commit; so edits of one document stand in a row, and sequences have no
 * holes or repetitions. When a batch fails, everything that was decided on top of it fails with it
 * (`Store.write`), and the next call starts from what the store then holds.
 */
export class ShardWriter implements DraftBase {
  readonly #records: ShardRecords
  readonly #clock: Clock
  readonly #turns: Turns
  readonly #metrics: WriteMetrics
  readonly #assertOpen: () => void
  readonly #onCommit: (documents: boolean) => void
  readonly #pending = new StagedRecords()
  readonly #heldTrails = new HeldTrails()
  /** As of the last batch that was staged; undefined: to be read. */
  #timeSpans: readonly TimeSpan[] | undefined
  readonly #ids: KnownIds
  /** What calls read ahead: each batch that lands meanwhile puts its documents there too. */
  readonly #aheads = new Set<Map<string, DocumentRecord | undefined>>()
  /** While a draft is being decided: what was read for it. */
  #fetched: Map<string, DocumentRecord | undefined> | undefined
  #staged: ReplicaState | undefined
  #committed: ReplicaState | undefined
  #last: Promise<void> | undefined
  #failuresSeen: number
  readonly #closing = new AbortController()
  /** Somebody waits for the store to recover, to tell of what it then holds. */
  #telling = false
  /** Since a failure, until the store has recovered. */
  #unsettled = false
  #settling: Promise<void> | undefined
  /** Set while a draft is being decided: whether it looked at something that is not committed yet. */
  #sawPending = false

  constructor(
    records: ShardRecords, clock: Clock, turns: Turns, metrics: WriteMetrics, budget: FilterBudget,
    assertOpen: () => void, onCommit: (documents: boolean) => void,
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

  /** Nothing is written any more. */
  close(): void {
    this.#closing.abort()
    this.#ids.release()
    this.#records.kept?.release()
  }

  /** Counters as of the last batch that ended well. */
  committed(): ReplicaState {
    if (this.#committed !== undefined) return this.#committed
    const state = this.#records.state()
    if (!this.#unsettled && this.#records.store.failures === this.#failuresSeen) this.#committed = state
    return state
  }

  /**
   * Decides, and resolves with the decision when everything that it wrote or relied upon is durable.
   * @param ids the documents that `decide` will ask for
   * @param decide runs once, synchronously
   */
  async write<T>(ids: readonly string[], decide: (draft: WriteDraft) => T): Promise<T> {
    this.#ids.start(this.committed().sequence === 0)
    const { decision, durable } = await this.#decided(ids, decide)
    await durable
    return decision
  }

  /** The draft is forgotten before its records are durable: it would be copied by garbage collections meanwhile. */
  async #decided<T>(
    ids: readonly string[], decide: (draft: WriteDraft) => T,
  ): Promise<{ readonly decision: T; readonly durable: Promise<void> | undefined }> {
    const ahead = new Map<string, DocumentRecord | undefined>()
    let draft: WriteDraft
    let decision: T
    try {
      if (ids.length > readAheadMin) {
        await this.#readAhead(ids, ahead)
        if (ids.length > smallCall) await this.#turns.pause()
      }
      while (this.#mustSettle()) {
        await this.#settle()
        ahead.clear()
      }
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

  /** With what waits to be written. */
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
    return this.#pending.partitions.get(partition) ?? this.#records.partition(partition)
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
    if (filled.changed) this.#onCommit(filled.documents.length > 0)
  }

  /** Peers must hear of a failed batch that is on the disk all the same. */
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

  /** False: the disk goes on failing. */
  async #tellOnce(): Promise<boolean> {
    try {
      if (this.#mustSettle()) await this.#settle()
      // Whoever is told asks how far the shard is, which the disk has to say.
      if (!this.#closing.signal.aborted) this.#onCommit(true)
      return true
    } catch (error) {
      if (error instanceof DamagedRecordError) return false
      if (!(error instanceof StorageError)) throw error
      return error.code === 'closed'
    }
  }

  /** Forgets what was staged when a batch has failed since, whoever's it was: nothing that was in flight lands. */
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
   * A batch that failed may be there after all, once the store has recovered (its log record was whole): an
   * empty write waits for that, so that the counters are read from what the store will stand by.
   */
  #settle(): Promise<void> {
    this.#settling ??= this.#records.store.write(() => {}).then(() => {
      this.#unsettled = false
      this.#records.kept?.settled()
    }).finally(() => {
      this.#settling = undefined
    })
    return this.#settling
  }
}
