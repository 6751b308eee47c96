import type {
  AttachmentRecord, CallContext, ChangeRow, CountDocumentsRequest, DiffRevisionsRequest, DigestBuckets, DocumentLeaves,
  DocumentRow,
  DocumentSnapshot, LocalDocument,
  OpenDocumentRequest, OpenRevisionsRequest, OpenedRevision, PartitionInfo, PurgeDocumentsReply, PurgeDocumentsRequest,
  PurgeRow,
  ReadBlobRequest, ReplicaCheckpoint, ReplicaDiff, ReplicaInfo, ScanChangesRequest, ScanDigestBucketRequest,
  ScanDocumentsRequest, ScanLocalDocumentsRequest, ShardId,
  ShardReplica, StoreRevisionsReply, StoreRevisionsRequest, TimeSpan, UpdateDocumentsReply, UpdateDocumentsRequest,
  UpdateLocalDocumentReply,
  UpdateLocalDocumentRequest, WrittenBlob,
} from '@sectional/core'
import { followTrail, ReplicaError } from '@sectional/core'
import type { Clock, Store, Turns } from '@sectional/runtime'
import type { CompactedShard } from '../compaction/shard-compaction.ts'
import type { Compactor } from '../compaction/compactor.ts'
import { checkCall, damageIn, toReplicaError, withinDeadline } from '../calls/call-guard.ts'
import { CommitWaiters } from '../calls/commit-waiters.ts'
import type { NodeBlobs } from '../blobs/node-blobs.ts'
import { ShardKeys } from '../records/key-layout.ts'
import type { FilterBudget } from '../reading/id-filter.ts'
import { KeptDocuments } from '../reading/kept-documents.ts'
import type { KeptDocumentsBudget } from '../reading/kept-documents.ts'
import type { DamagedRecordError } from '../records/damaged-record.ts'
import type { DirectoryEntry } from '../directory/shard-directory.ts'
import { ShardRecords } from '../reading/shard-records.ts'
import { ShardWriter } from '../writing/shard-writer.ts'
import type { WriteMetrics } from '../writing/shard-writer.ts'
import { countChanges } from '../verbs/changes-count.ts'
import { scanChanges } from '../verbs/changes-scan.ts'
import { digestDocuments, scanDigestBucket } from '../verbs/digest.ts'
import { openDocument } from '../verbs/document-open.ts'
import { decidePurges, purgesUpTo, scanPurges } from '../verbs/documents-purge.ts'
import { countDocuments } from '../verbs/documents-count.ts'
import { scanDocuments } from '../verbs/documents-scan.ts'
import { decideEdits } from '../verbs/documents-update.ts'
import { decideLocalUpdate, openLocalDocuments, scanLocalDocuments } from '../verbs/local-documents.ts'
import { partitionInfo } from '../verbs/partition-info.ts'
import { replicaInfo } from '../verbs/replica-info.ts'
import { diffRevisions } from '../verbs/revisions-diff.ts'
import { openRevisions } from '../verbs/revisions-open.ts'
import { decideRevisions } from '../verbs/revisions-store.ts'

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
  /** Called after each durable change of a shard; `documents` is false when only local documents changed. */
  readonly onCommit: (shard: ShardId, documents: boolean) => void
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
  readonly #history: string
  readonly #blobs: NodeBlobs
  readonly #clock: Clock
  readonly #writer: ShardWriter
  readonly #waiters: CommitWaiters
  readonly #compactor: Compactor
  readonly #onDamage: (error: DamagedRecordError) => void
  readonly #onMissed: () => void
  #catchingUp = false
  #refusal: ReplicaError | undefined

  constructor(
    { store, blobs, clock, turns, metrics, compactor, filterBudget, keptBudget, onCommit, onDamage, onMissed }: EngineResources,
    { shard, prefix, history, partitioned }: DirectoryEntry,
  ) {
    this.shard = shard
    this.#history = history
    this.#blobs = blobs
    this.#clock = clock
    this.records = new ShardRecords(store, new ShardKeys(prefix), partitioned, new KeptDocuments(keptBudget))
    this.#waiters = new CommitWaiters(clock)
    this.#compactor = compactor
    this.#onDamage = error => onDamage(shard, error)
    this.#onMissed = () => onMissed(shard)
    this.#writer = new ShardWriter(this.records, clock, turns, metrics, filterBudget, () =>
      this.#assertOpen(), documents => {
      this.#waiters.committed(this.#writer.committed().sequence)
      compactor.written(shard, this.#compacted())
      onCommit(shard, documents)
    })
  }

  /** While true, `updateDocuments` declines unless it is forced. */
  setCatchingUp(catchingUp: boolean): void {
    this.#catchingUp = catchingUp
  }

  /** After this, every call and the next page of every scan is rejected with `refusal`. */
  refuse(refusal: ReplicaError): void {
    this.#refusal ??= refusal
    this.#writer.close()
    this.#waiters.refuse(this.#refusal)
  }

  openDocument(request: OpenDocumentRequest, context: CallContext): Promise<DocumentSnapshot | null> {
    return this.#read(context, () => openDocument(this.records, request))
  }

  openRevisions(
    requests: readonly OpenRevisionsRequest[], context: CallContext,
  ): Promise<readonly (readonly OpenedRevision[])[]> {
    return this.#read(context, () => openRevisions(this.records, requests, this.#writer.committed().purgeSequence > 0))
  }

  updateDocuments(request: UpdateDocumentsRequest, context: CallContext): Promise<UpdateDocumentsReply> {
    return this.#answer<UpdateDocumentsReply>(context, () => {
      if (this.#catchingUp && request.force !== true) return { kind: 'declined' }
      return this.#holding(request.edits, () =>
        this.#orMissed(this.#writer.write(
          request.edits.map(edit => edit.id), draft => ({ kind: 'decided', outcomes: decideEdits(draft, request) }),
        )))
    })
  }

  storeRevisions(request: StoreRevisionsRequest, context: CallContext): Promise<StoreRevisionsReply> {
    return this.#answer(context, () => {
      if (request.missed) this.#onMissed()
      const stored = this.#holding(request.revisions, () =>
        this.#writer.write(request.revisions.map(revision => revision.id), draft => decideRevisions(draft, request)))
      return request.revisions.length > 0 ? this.#orMissed(stored) : stored
    })
  }

  /**
   * Reports a failed write. Other replicas may acknowledge these edits, decided by another replica, and this replica
   * then lacks them. When the call's deadline passes first, the write is still judged by its own result.
   */
  #orMissed<T>(write: Promise<T>): Promise<T> {
    write.catch(() => this.#onMissed())
    return write
  }

  /**
   * Protects the attachment content that the items name from removal while they are written. Items without attachments
   * cost nothing.
   */
  #holding<T>(
    items: readonly { readonly attachments?: readonly AttachmentRecord[] }[], write: () => Promise<T>,
  ): Promise<T> {
    return items.some(item => item.attachments !== undefined) ? this.#holdAndWrite(items, write) : write()
  }

  async #holdAndWrite<T>(
    items: readonly { readonly attachments?: readonly AttachmentRecord[] }[], write: () => Promise<T>,
  ): Promise<T> {
    const release = await this.#blobs.hold(items)
    try {
      return await write()
    } finally {
      release()
    }
  }

  diffRevisions(requests: readonly DiffRevisionsRequest[], context: CallContext): Promise<readonly ReplicaDiff[]> {
    return this.#read(context, () => diffRevisions(this.records, requests))
  }

  scanDocuments(request: ScanDocumentsRequest, context: CallContext): AsyncGenerator<readonly DocumentRow[]> {
    return this.#pages(context, () => scanDocuments(this.records, request))
  }

  countDocuments(request: CountDocumentsRequest, context: CallContext): Promise<number> {
    return this.#read(context, () => countDocuments(this.records, this.#writer.committed(), request))
  }

  scanChanges(request: ScanChangesRequest, context: CallContext): AsyncGenerator<readonly ChangeRow[]> {
    return this.#pages(context, () => {
      if (request.history !== undefined && request.history !== this.#history) {
        throw new ReplicaError('not_hosted', 'the replica was rebuilt and has another history')
      }
      return scanChanges(this.records, request)
    })
  }

  countChanges(since: number, context: CallContext): Promise<number> {
    return this.#read(context, () => countChanges(this.records, this.#writer.committed(), since))
  }

  /** A waiting call costs one entry in a set and the timer of its deadline. */
  async waitForChange(seen: ReplicaCheckpoint, context: CallContext): Promise<ReplicaCheckpoint> {
    this.#check(context)
    const { sequence } = this.#writer.committed()
    if (seen.history !== this.#history || sequence > seen.sequence) return { history: this.#history, sequence }
    return { history: this.#history, sequence: await this.#waiters.wait(seen.sequence, context) }
  }

  translateCheckpoints(read: readonly ReplicaCheckpoint[], context: CallContext): Promise<number> {
    return this.#read(
      context,
      () => Math.max(0, ...read.map(({ history, sequence }) => followTrail(this.#writer.trail(history), sequence))),
    )
  }

  openLocalDocuments(ids: readonly string[], context: CallContext): Promise<readonly (LocalDocument | null)[]> {
    return this.#read(context, () => openLocalDocuments(this.records, ids))
  }

  updateLocalDocument(request: UpdateLocalDocumentRequest, context: CallContext): Promise<UpdateLocalDocumentReply> {
    return this.#answer(
      context, () => this.#writer.write([], draft => decideLocalUpdate(draft, request, this.#clock.now())),
    )
  }

  scanLocalDocuments(
    request: ScanLocalDocumentsRequest, context: CallContext,
  ): AsyncGenerator<readonly LocalDocument[]> {
    return this.#pages(context, () => scanLocalDocuments(this.records, request))
  }

  purgeDocuments(request: PurgeDocumentsRequest, context: CallContext): Promise<PurgeDocumentsReply> {
    return this.#answer(context, () => {
      const stored = this.#writer.write(request.purges.map(purge => purge.id), draft => decidePurges(draft, request))
      return request.purges.length > 0 ? this.#orMissed(stored) : stored
    })
  }

  scanPurges(since: number, context: CallContext): AsyncGenerator<readonly PurgeRow[]> {
    return this.#pages(context, () => scanPurges(this.records, since))
  }

  trimPurges(sequence: number, context: CallContext): Promise<void> {
    return this.#answer(context, async () => {
      for await (const page of purgesUpTo(this.records, sequence)) {
        await this.#writer.write([], draft => draft.trimPurges(page))
      }
    })
  }

  partitionInfo(partition: string, context: CallContext): Promise<PartitionInfo> {
    return this.#read(context, () => partitionInfo(this.records, partition))
  }

  compactShard(context: CallContext): Promise<void> {
    return this.#answer(context, () => this.#compactor.request(this.shard, this.#compacted()))
  }

  timeSpans({ clear }: { readonly clear: boolean }, context: CallContext): Promise<readonly TimeSpan[]> {
    return this.#answer(context, async () => {
      if (clear) await this.#writer.write([], draft => draft.clearTimeSpans())
      return this.records.timeSpans()
    })
  }

  replicaInfo(context: CallContext): Promise<ReplicaInfo> {
    return this.#read(context, () => {
      const identity = {
        history: this.#history, catchingUp: this.#catchingUp, compacting: this.#compactor.isCompacting(this.shard),
      }
      return replicaInfo(this.records, identity, () => this.#writer.committed())
    })
  }

  digestDocuments(bucketCount: number, context: CallContext): Promise<DigestBuckets> {
    return this.#read(context, () => digestDocuments(this.records, bucketCount))
  }

  scanDigestBucket(request: ScanDigestBucketRequest, context: CallContext): AsyncGenerator<readonly DocumentLeaves[]> {
    return this.#pages(context, () => scanDigestBucket(this.records, request))
  }

  async writeBlob(chunks: AsyncIterable<Uint8Array>, context: CallContext): Promise<WrittenBlob> {
    try {
      this.#check(context)
      return await this.#blobs.write(chunks)
    } catch (error) {
      throw this.#refusal ?? toReplicaError(error)
    }
  }

  async *readBlob({ hash, span }: ReadBlobRequest, context: CallContext): AsyncGenerator<Uint8Array> {
    for await (const [chunk] of this.#pages(context, () => inPages(this.#blobs.read(hash, span)))) {
      if (chunk !== undefined) yield chunk
    }
  }

  hasBlobs(hashes: readonly string[], context: CallContext): Promise<readonly boolean[]> {
    return this.#read(context, () => this.#blobs.keep(hashes))
  }

  #compacted(): CompactedShard {
    return { records: this.records, writer: this.#writer }
  }

  #assertOpen(): void {
    if (this.#refusal !== undefined) throw this.#refusal
  }

  /**
   * Refuses the call when its deadline passed, the engine is closed, or the call names another incarnation of the
   * replica.
   */
  #check(context: CallContext): void {
    checkCall(context)
    this.#assertOpen()
    if (context.history === undefined || context.history === this.#history) return
    throw new ReplicaError('other_history', `the replica has history ${this.#history}, not ${context.history}`)
  }

  async #answer<T>(context: CallContext, work: () => T | Promise<T>): Promise<T> {
    try {
      this.#check(context)
      const answer = work()
      return answer instanceof Promise ? await withinDeadline(this.#clock, context, answer) : answer
    } catch (error) {
      throw this.#failure(error)
    }
  }

  #failure(error: unknown): unknown {
    if (this.#refusal !== undefined) return this.#refusal
    const damage = damageIn(error)
    if (damage !== undefined) this.#onDamage(damage)
    return toReplicaError(error)
  }

  /** Runs a read. A read that is answered synchronously needs no timer. */
  async #read<T>(context: CallContext, work: () => T | Promise<T>): Promise<T> {
    try {
      this.#check(context)
      const answer = work()
      if (!(answer instanceof Promise)) return answer
      const waitedFor = await withinDeadline(this.#clock, context, answer)
      // The keys of a dropped shard can be removed during the read, so the result counts only if the engine is still
      // open.
      this.#assertOpen()
      return waitedFor
    } catch (error) {
      throw this.#failure(error)
    }
  }

  async *#pages<Row>(context: CallContext, scan: () => AsyncGenerator<readonly Row[]>): AsyncGenerator<readonly Row[]> {
    let waiting = false
    let pages: AsyncGenerator<readonly Row[]> | undefined
    try {
      pages = scan()
      for (;;) {
        this.#check(context)
        waiting = true
        const next = await withinDeadline(this.#clock, context, pages.next())
        waiting = false
        this.#assertOpen()
        if (next.done) return
        yield next.value
      }
    } catch (error) {
      throw this.#failure(error)
    } finally {
      const closed = pages?.return(undefined)
      // A read that outlived its deadline closes when it ends; the caller already received the timeout.
      if (waiting) closed?.catch(() => {})
      else await closed
    }
  }
}

async function* inPages<Item>(items: AsyncIterable<Item>): AsyncGenerator<readonly Item[]> {
  for await (const item of items) yield [item]
}
