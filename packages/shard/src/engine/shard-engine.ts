import type {
  CallContext, ChangeRow, CountDocumentsRequest, DiffRevisionsRequest, DocumentRow, DocumentSnapshot, LocalDocument,
  OpenDocumentRequest, OpenRevisionsRequest, OpenedRevision, PurgeDocumentsReply, PurgeDocumentsRequest, PurgeRow,
  ReplicaCheckpoint, ReplicaDiff, ScanChangesRequest, ScanDocumentsRequest, ScanLocalDocumentsRequest, ShardId,
  ShardReplica, StoreRevisionsReply, StoreRevisionsRequest, TimeSpan, UpdateDocumentsReply, UpdateDocumentsRequest,
  UpdateLocalDocumentReply, UpdateLocalDocumentRequest,
} from '@sectional/core'
import { followTrail, type PageBudget, ReplicaError } from '@sectional/core'
import type { Clock, Store, Turns } from '@sectional/runtime'
import { StorageError } from '@sectional/runtime'
import type { Compactor } from '../compaction/compactor.ts'
import { CommitWaiters } from '../calls/commit-waiters.ts'
import { ReplicaCalls } from '../calls/replica-calls.ts'
import type { NodeBlobs } from '../blobs/node-blobs.ts'
import { ShardKeys } from '../records/key-layout.ts'
import type { FilterBudget } from '../reading/id-filter.ts'
import { KeptDocuments } from '../reading/kept-documents.ts'
import type { KeptDocumentsBudget } from '../reading/kept-documents.ts'
import type { KnownAttempts } from '../reading/known-attempts.ts'
import { DamagedRecordError } from '../records/damaged-record.ts'
import type { DirectoryEntry } from '../directory/shard-directory.ts'
import { ShardRecords } from '../reading/shard-records.ts'
import { ShardWriter } from '../writing/shard-writer.ts'
import type { WriteMetrics } from '../writing/shard-writer.ts'
import { countChanges } from '../verbs/changes-count.ts'
import { scanChanges } from '../verbs/changes-scan.ts'
import { openDocument } from '../verbs/document-open.ts'
import { decidePurges, purgesUpTo, scanPurges } from '../verbs/documents-purge.ts'
import { countDocuments } from '../verbs/documents-count.ts'
import { scanDocuments } from '../verbs/documents-scan.ts'
import { decideEdits } from '../verbs/documents-update.ts'
import { decideLocalUpdate, openLocalDocuments, scanLocalDocuments } from '../verbs/local-documents.ts'
import { diffRevisions } from '../verbs/revisions-diff.ts'
import { openRevisions } from '../verbs/revisions-open.ts'
import { decideRevisions } from '../verbs/revisions-store.ts'
import { ShardBlobs } from './shard-blobs.ts'
import { ShardUpkeep } from './shard-upkeep.ts'

/** Resources that all engines of one node share. */
export interface EngineResources {
  readonly store: Store
  readonly blobs: NodeBlobs
  readonly clock: Clock
  readonly turns: Turns
  readonly metrics: WriteMetrics
  readonly compactor: Compactor
  readonly filterBudget: FilterBudget
  readonly keptBudget: KeptDocumentsBudget
  readonly attempts: KnownAttempts
  readonly scanPages: PageBudget
  /** Called after each durable change of a shard; `documents` is false when only local documents changed. */
  readonly onCommit: (shard: ShardId, documents: boolean, designs: boolean) => void
  /** Called when a call read a damaged record. */
  readonly onDamage: (shard: ShardId, error: DamagedRecordError) => void
  /** Called when this replica failed to store revisions or purges that its peers may have stored. */
  readonly onMissed: (shard: ShardId) => void
}

/**
 * One replica of one shard in the node's store. It holds no file and no timer of its own, so an idle engine is a few
 * small objects. Point reads are answered synchronously on the calling thread. Scans return pages of bounded size and
 * let other work run in between; `timeoutMs` bounds the wait for each page, not the time that the reader takes.
 */
export class ShardEngine implements ShardReplica {
  readonly shard: ShardId
  readonly records: ShardRecords
  readonly blobs: ShardBlobs
  readonly upkeep: ShardUpkeep
  readonly #clock: Clock
  readonly #calls: ReplicaCalls
  readonly #writer: ShardWriter
  readonly #waiters: CommitWaiters
  readonly #onMissed: () => void

  constructor(resources: EngineResources, { shard, prefix, history, partitioned }: DirectoryEntry) {
    const { store, blobs, clock, turns, metrics, compactor, filterBudget, keptBudget, onCommit } = resources
    const { attempts, scanPages } = resources
    this.shard = shard
    this.#clock = clock
    this.records = new ShardRecords(
      store, new ShardKeys(prefix), partitioned, new KeptDocuments(keptBudget), attempts, scanPages,
    )
    this.#waiters = new CommitWaiters(clock)
    this.#calls = new ReplicaCalls(history, clock, error => resources.onDamage(shard, error))
    this.#onMissed = () => resources.onMissed(shard)
    const assertOpen = (): void => this.#calls.assertOpen()
    this.#writer = new ShardWriter(this.records, clock, turns, metrics, filterBudget, assertOpen, (...change) => {
      this.#waiters.committed(this.#writer.committed().sequence)
      compactor.written(shard, compacted)
      onCommit(shard, ...change)
    })
    const compacted = { records: this.records, writer: this.#writer }
    this.blobs = new ShardBlobs(this.#calls, blobs)
    this.upkeep = new ShardUpkeep(this.#calls, shard, compacted, compactor)
  }

  /** While true, `updateDocuments` declines unless it is forced. */
  setCatchingUp(catchingUp: boolean): void {
    this.upkeep.catchingUp = catchingUp
  }

  /** After this, every call and the next page of every scan is rejected with `refusal`. */
  refuse(refusal: ReplicaError): void {
    this.#calls.refuse(refusal)
    this.#writer.close()
    this.#waiters.refuse(refusal)
  }

  openDocument(request: OpenDocumentRequest, context: CallContext): Promise<DocumentSnapshot | null> {
    return this.#calls.read(context, () => openDocument(this.records, request))
  }

  openRevisions(
    requests: readonly OpenRevisionsRequest[], context: CallContext,
  ): Promise<readonly (readonly OpenedRevision[])[]> {
    return this.#calls.read(
      context, () => openRevisions(this.records, requests, this.#writer.committed().purgeSequence > 0),
    )
  }

  updateDocuments(request: UpdateDocumentsRequest, context: CallContext): Promise<UpdateDocumentsReply> {
    return this.#calls.answer<UpdateDocumentsReply>(context, () => {
      if (this.upkeep.catchingUp && request.force !== true) return { kind: 'declined' }
      return this.blobs.holding(request.edits, () =>
        this.#orMissed(this.#writer.write(
          request.edits.map(edit => edit.id), draft => ({ kind: 'decided', outcomes: decideEdits(draft, request) }),
        )))
    })
  }

  storeRevisions(request: StoreRevisionsRequest, context: CallContext): Promise<StoreRevisionsReply> {
    return this.#calls.answer(context, () => {
      if (request.missed) this.#onMissed()
      const stored = this.blobs.holding(request.revisions, () =>
        this.#writer.write(request.revisions.map(revision => revision.id), draft => decideRevisions(draft, request)))
      return request.revisions.length > 0 ? this.#orMissed(stored) : stored
    })
  }

  /**
   * Reports a failed write. Other replicas may acknowledge these edits, decided by another replica, and this replica
   * then lacks them. When the call's deadline passes first, the write is still judged by its own result. A write that
   * lacks the content of attachments is not reported: the caller provides the content and repeats the call, which is
   * the usual course while a replica that was away receives new edits of documents with older attachments.
   */
  #orMissed<T>(write: Promise<T>): Promise<T> {
    write.catch((error: unknown) => {
      if (!(error instanceof ReplicaError && error.code === 'missing_blob')) this.#onMissed()
    })
    return write
  }

  diffRevisions(requests: readonly DiffRevisionsRequest[], context: CallContext): Promise<readonly ReplicaDiff[]> {
    return this.#calls.read(context, () => diffRevisions(this.records, requests))
  }

  scanDocuments(request: ScanDocumentsRequest, context: CallContext): AsyncGenerator<readonly DocumentRow[]> {
    return this.#calls.pages(context, () => scanDocuments(this.records, request))
  }

  countDocuments(request: CountDocumentsRequest, context: CallContext): Promise<number> {
    return this.#calls.read(context, () => countDocuments(this.records, this.#writer.committed(), request))
  }

  scanChanges(request: ScanChangesRequest, context: CallContext): AsyncGenerator<readonly ChangeRow[]> {
    return this.#calls.pages(context, () => {
      if (request.history !== undefined && request.history !== this.#calls.history) {
        throw new ReplicaError('not_hosted', 'the replica was rebuilt and has another history')
      }
      return scanChanges(this.records, request)
    })
  }

  countChanges(since: number, context: CallContext): Promise<number> {
    return this.#calls.read(context, () => countChanges(this.records, this.#writer.committed(), since))
  }

  /** Returns the newest position at once; undefined when the replica is closed, or its disk cannot be read now. */
  position(): ReplicaCheckpoint | undefined {
    if (this.#calls.refusal !== undefined) return undefined
    try {
      return { history: this.#calls.history, sequence: this.#writer.committed().sequence }
    } catch (error) {
      if (error instanceof StorageError || error instanceof DamagedRecordError) return undefined
      throw error
    }
  }

  /** A waiting call costs one entry in a set and the timer of its deadline. */
  async waitForChange(seen: ReplicaCheckpoint, context: CallContext): Promise<ReplicaCheckpoint> {
    const { history } = this.#calls
    const { sequence } = this.#calls.readNow(context, () => this.#writer.committed())
    if (seen.history !== history || sequence > seen.sequence) return { history, sequence }
    return { history, sequence: await this.#waiters.wait(seen.sequence, context) }
  }

  translateCheckpoints(read: readonly ReplicaCheckpoint[], context: CallContext): Promise<number> {
    return this.#calls.read(
      context,
      () => Math.max(0, ...read.map(({ history, sequence }) => followTrail(this.#writer.trail(history), sequence))),
    )
  }

  openLocalDocuments(ids: readonly string[], context: CallContext): Promise<readonly (LocalDocument | null)[]> {
    return this.#calls.read(context, () => openLocalDocuments(this.records, ids))
  }

  updateLocalDocument(request: UpdateLocalDocumentRequest, context: CallContext): Promise<UpdateLocalDocumentReply> {
    return this.#calls.answer(
      context, () => this.#writer.write([], draft => decideLocalUpdate(draft, request, this.#clock.now())),
    )
  }

  scanLocalDocuments(
    request: ScanLocalDocumentsRequest, context: CallContext,
  ): AsyncGenerator<readonly LocalDocument[]> {
    return this.#calls.pages(context, () => scanLocalDocuments(this.records, request))
  }

  purgeDocuments(request: PurgeDocumentsRequest, context: CallContext): Promise<PurgeDocumentsReply> {
    return this.#calls.answer(context, () => {
      const stored = this.#writer.write(request.purges.map(purge => purge.id), draft => decidePurges(draft, request))
      return request.purges.length > 0 ? this.#orMissed(stored) : stored
    })
  }

  scanPurges(since: number, context: CallContext): AsyncGenerator<readonly PurgeRow[]> {
    return this.#calls.pages(context, () => scanPurges(this.records, since))
  }

  trimPurges(sequence: number, context: CallContext): Promise<void> {
    return this.#calls.answer(context, async () => {
      for await (const page of purgesUpTo(this.records, sequence)) {
        await this.#writer.write([], draft => draft.trimPurges(page))
      }
    })
  }

  timeSpans({ clear }: { readonly clear: boolean }, context: CallContext): Promise<readonly TimeSpan[]> {
    return this.#calls.answer(context, async () => {
      if (clear) await this.#writer.write([], draft => draft.clearTimeSpans())
      return this.records.timeSpans()
    })
  }
}
