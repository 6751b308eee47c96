import { StorageError } from '@sectional/runtime'
import type { Counter, Histogram } from '@sectional/runtime'
import type { DocumentRecord } from './records/document-record.ts'
import type { LocalRecord } from './records/local-record.ts'
import type { ReplicaState } from './records/state-record.ts'
import type { ShardRecords } from './shard-records.ts'
import { WriteDraft } from './write-draft.ts'
import type { DraftBase, FilledDraft } from './write-draft.ts'

/** More document records than this are read ahead in one crossing to the thread pool; fewer on the spot. */
const readAheadMin = 32

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
  readonly #metrics: WriteMetrics
  readonly #assertOpen: () => void
  readonly #onCommit: () => void
  /** What batches in flight will have written. */
  readonly #documents = new Map<string, DocumentRecord>()
  readonly #locals = new Map<string, LocalRecord>()
  readonly #checkpoints = new Map<string, number>()
  readonly #largeBodies = new Map<number, number>()
  #fetched: ReadonlyMap<string, DocumentRecord | undefined> | undefined
  #staged: ReplicaState | undefined
  #committed: ReplicaState | undefined
  #last: Promise<void> | undefined
  /** Counts batches that ended well, and failures. */
  #ended = 0
  #failuresSeen: number
  /** Since a failure, until the store has recovered. */
  #unsettled = false
  #settling: Promise<void> | undefined
  /** Set while a draft is being decided: whether it looked at something that is not committed yet. */
  #sawPending = false

  constructor(records: ShardRecords, metrics: WriteMetrics, assertOpen: () => void, onCommit: () => void) {
    this.#records = records
    this.#failuresSeen = records.store.failures
    this.#metrics = metrics
    this.#assertOpen = assertOpen
    this.#onCommit = onCommit
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
    let fetched = ids.length > readAheadMin ? await this.#readAhead(ids) : undefined
    while (this.#mustSettle()) {
      await this.#settle()
      fetched = undefined
    }
    this.#assertOpen()
    this.#fetched = fetched
    this.#sawPending = false
    const draft = new WriteDraft(this, this.#staged ?? this.committed())
    let decision: T
    try {
      decision = decide(draft)
    } finally {
      this.#fetched = undefined
    }
    if (!draft.isEmpty()) await this.#commit(draft)
    else if (this.#sawPending) await this.#last
    return decision
  }

  document(id: string): DocumentRecord | undefined {
    const pending = this.#documents.get(id)
    if (pending !== undefined) {
      this.#sawPending = true
      return pending
    }
    return this.#fetched?.has(id) ? this.#fetched.get(id) : this.#records.document(id)
  }

  localDocument(id: string): LocalRecord | undefined {
    const pending = this.#locals.get(id)
    if (pending !== undefined) this.#sawPending = true
    return pending ?? this.#records.localDocument(id)
  }

  checkpoint(history: string): number {
    const pending = this.#checkpoints.get(history)
    if (pending !== undefined) this.#sawPending = true
    return pending ?? this.#records.checkpoint(history)
  }

  bodyChunks(sequence: number): number {
    return this.#largeBodies.get(sequence) ?? this.#records.bodyChunks(sequence)
  }

  /** What was read is only used when no batch ended meanwhile: what is in flight is found in the maps. */
  async #readAhead(ids: readonly string[]): Promise<ReadonlyMap<string, DocumentRecord | undefined> | undefined> {
    const ended = this.#ended
    const records = await this.#records.documents(ids)
    if (ended !== this.#ended) return undefined
    return new Map(ids.map((id, index) => [id, records[index]]))
  }

  #commit(draft: WriteDraft): Promise<void> {
    const staged: FilledDraft[] = []
    const done = this.#records.store.write(batch => {
      staged.push(draft.fill(batch, this.#records.keys))
    })
    const [filled] = staged
    if (filled === undefined) return done
    for (const [id, record] of filled.documents) this.#documents.set(id, record)
    for (const record of filled.locals) this.#locals.set(record.id, record)
    for (const [sequence, chunks] of filled.largeBodies) this.#largeBodies.set(sequence, chunks)
    if (filled.checkpoint !== undefined) this.#checkpoints.set(filled.checkpoint.history, filled.checkpoint.sequence)
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
    this.#ended++
    this.#committed = filled.state
    for (const [id, record] of filled.documents) forget(this.#documents, id, record)
    for (const record of filled.locals) forget(this.#locals, record.id, record)
    for (const sequence of filled.largeBodies.keys()) this.#largeBodies.delete(sequence)
    if (filled.checkpoint !== undefined) forget(this.#checkpoints, filled.checkpoint.history, filled.checkpoint.sequence)
    this.#metrics.commits.add()
    this.#metrics.documents.add(filled.documents.length)
    this.#metrics.commitDocuments.observe(filled.documents.length)
    if (filled.documents.length > 0 || filled.locals.length > 0) this.#onCommit()
  }

  /** Peers must hear of a failed batch that is on the disk all the same. */
  async #tellOfLanded(): Promise<void> {
    try {
      if (this.#mustSettle()) await this.#settle()
      this.#onCommit()
    } catch (error) {
      // The disk goes on failing: the next commit tells of it.
      if (!(error instanceof StorageError)) throw error
    }
  }

  /** Forgets what was staged when a batch has failed since, whoever's it was: nothing that was in flight lands. */
  #mustSettle(): boolean {
    const { failures } = this.#records.store
    if (failures !== this.#failuresSeen) {
      this.#failuresSeen = failures
      this.#unsettled = true
      this.#ended++
      this.#documents.clear()
      this.#locals.clear()
      this.#checkpoints.clear()
      this.#largeBodies.clear()
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
    }).finally(() => {
      this.#settling = undefined
    })
    return this.#settling
  }
}

function forget<Value>(pending: Map<string, Value>, key: string, value: Value): void {
  if (pending.get(key) === value) pending.delete(key)
}
