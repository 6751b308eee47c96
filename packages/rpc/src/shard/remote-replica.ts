import type {
  BlobSpan, CallContext, ChangeRow, DigestBuckets, DocumentLeaves, DocumentRow, DocumentSnapshot, IdBound, LocalDocument,
  OpenDocumentRequest, OpenRevisionsRequest, OpenedRevision, PartitionInfo, PurgeDocumentsReply, PurgeDocumentsRequest, PurgeRow,
  ReplicaCheckpoint, ReplicaDiff, ReplicaInfo, ScanChangesRequest, ScanDocumentsRequest, ScanLocalDocumentsRequest, ShardId,
  ShardReplica, StoreRevisionsReply, StoreRevisionsRequest, TimeSpan, UpdateDocumentsReply, UpdateDocumentsRequest, UpdateLocalDocumentReply,
  UpdateLocalDocumentRequest, WrittenBlob,
} from '@sectional/core'
import type { StreamVerb, Verb } from '../schema/verb.ts'
import * as scans from './scan-verbs.ts'
import * as verbs from './shard-verbs.ts'
import * as upkeep from './upkeep-verbs.ts'

/** Calls one node over whichever link to it is best at that moment. */
export interface Caller {
  call<Request, Reply>(verb: Verb<Request, Reply>, shard: ShardId | null, request: Request, context: CallContext): Promise<Reply>
  scan<Request, Row>(verb: StreamVerb<Request, Row>, shard: ShardId, request: Request, context: CallContext): AsyncIterable<readonly Row[]>
  upload<Reply>(verb: Verb<void, Reply>, shard: ShardId, chunks: AsyncIterable<Uint8Array>, context: CallContext): Promise<Reply>
}

/** A replica on another node. */
export class RemoteReplica implements ShardReplica {
  readonly #caller: Caller
  readonly #shard: ShardId

  constructor(caller: Caller, shard: ShardId) {
    this.#caller = caller
    this.#shard = shard
  }

  openDocument(request: OpenDocumentRequest, context: CallContext): Promise<DocumentSnapshot | null> {
    return this.#caller.call(verbs.openDocument, this.#shard, request, context)
  }

  openRevisions(requests: readonly OpenRevisionsRequest[], context: CallContext): Promise<readonly (readonly OpenedRevision[])[]> {
    return this.#caller.call(verbs.openRevisions, this.#shard, requests, context)
  }

  updateDocuments(request: UpdateDocumentsRequest, context: CallContext): Promise<UpdateDocumentsReply> {
    return this.#caller.call(verbs.updateDocuments, this.#shard, request, context)
  }

  storeRevisions(request: StoreRevisionsRequest, context: CallContext): Promise<StoreRevisionsReply> {
    return this.#caller.call(verbs.storeRevisions, this.#shard, request, context)
  }

  diffRevisions(
    requests: readonly { readonly id: string; readonly revisions: readonly string[] }[], context: CallContext,
  ): Promise<readonly ReplicaDiff[]> {
    return this.#caller.call(verbs.diffRevisions, this.#shard, requests, context)
  }

  scanDocuments(request: ScanDocumentsRequest, context: CallContext): AsyncIterable<readonly DocumentRow[]> {
    return this.#caller.scan(scans.scanDocuments, this.#shard, request, context)
  }

  countDocuments(request: { readonly before?: IdBound; readonly descending: boolean }, context: CallContext): Promise<number> {
    return this.#caller.call(verbs.countDocuments, this.#shard, request, context)
  }

  scanChanges(request: ScanChangesRequest, context: CallContext): AsyncIterable<readonly ChangeRow[]> {
    return this.#caller.scan(scans.scanChanges, this.#shard, request, context)
  }

  countChanges(since: number, context: CallContext): Promise<number> {
    return this.#caller.call(verbs.countChanges, this.#shard, since, context)
  }

  waitForChange(seen: ReplicaCheckpoint, context: CallContext): Promise<ReplicaCheckpoint> {
    return this.#caller.call(verbs.waitForChange, this.#shard, seen, context)
  }

  translateCheckpoints(read: readonly ReplicaCheckpoint[], context: CallContext): Promise<number> {
    return this.#caller.call(verbs.translateCheckpoints, this.#shard, read, context)
  }

  openLocalDocuments(ids: readonly string[], context: CallContext): Promise<readonly (LocalDocument | null)[]> {
    return this.#caller.call(verbs.openLocalDocuments, this.#shard, ids, context)
  }

  updateLocalDocument(request: UpdateLocalDocumentRequest, context: CallContext): Promise<UpdateLocalDocumentReply> {
    return this.#caller.call(verbs.updateLocalDocument, this.#shard, request, context)
  }

  scanLocalDocuments(request: ScanLocalDocumentsRequest, context: CallContext): AsyncIterable<readonly LocalDocument[]> {
    return this.#caller.scan(scans.scanLocalDocuments, this.#shard, request, context)
  }

  purgeDocuments(request: PurgeDocumentsRequest, context: CallContext): Promise<PurgeDocumentsReply> {
    return this.#caller.call(upkeep.purgeDocuments, this.#shard, request, context)
  }

  scanPurges(since: number, context: CallContext): AsyncIterable<readonly PurgeRow[]> {
    return this.#caller.scan(upkeep.scanPurges, this.#shard, since, context)
  }

  trimPurges(sequence: number, context: CallContext): Promise<void> {
    return this.#caller.call(upkeep.trimPurges, this.#shard, sequence, context)
  }

  partitionInfo(partition: string, context: CallContext): Promise<PartitionInfo> {
    return this.#caller.call(upkeep.partitionInfo, this.#shard, partition, context)
  }

  compactShard(context: CallContext): Promise<void> {
    return this.#caller.call(upkeep.compactShard, this.#shard, undefined, context)
  }

  timeSpans(request: { readonly clear: boolean }, context: CallContext): Promise<readonly TimeSpan[]> {
    return this.#caller.call(upkeep.timeSpans, this.#shard, request, context)
  }

  replicaInfo(context: CallContext): Promise<ReplicaInfo> {
    return this.#caller.call(verbs.replicaInfo, this.#shard, undefined, context)
  }

  digestDocuments(bucketCount: number, context: CallContext): Promise<DigestBuckets> {
    return this.#caller.call(verbs.digestDocuments, this.#shard, bucketCount, context)
  }

  scanDigestBucket(bucketCount: number, bucket: number, context: CallContext): AsyncIterable<readonly DocumentLeaves[]> {
    return this.#caller.scan(scans.scanDigestBucket, this.#shard, { bucketCount, bucket }, context)
  }

  writeBlob(chunks: AsyncIterable<Uint8Array>, context: CallContext): Promise<WrittenBlob> {
    return this.#caller.upload(verbs.writeBlob, this.#shard, chunks, context)
  }

  async* readBlob(hash: string, span: BlobSpan | null, context: CallContext): AsyncGenerator<Uint8Array> {
    for await (const chunks of this.#caller.scan(scans.readBlob, this.#shard, { hash, span }, context)) yield* chunks
  }

  hasBlobs(hashes: readonly string[], context: CallContext): Promise<readonly boolean[]> {
    return this.#caller.call(verbs.hasBlobs, this.#shard, hashes, context)
  }
}
