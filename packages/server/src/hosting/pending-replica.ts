import type {
  BlobSpan, CallContext, ChangeRow, DigestBuckets, DocumentLeaves, DocumentRow, DocumentSnapshot, IdBound, LocalDocument,
  OpenDocumentRequest, OpenRevisionsRequest, OpenedRevision, PartitionInfo, PurgeDocumentsReply, PurgeDocumentsRequest, PurgeRow,
  ReplicaCheckpoint, ReplicaDiff, ReplicaInfo, ScanChangesRequest, ScanDocumentsRequest, ScanLocalDocumentsRequest, ShardReplica,
  StoreRevisionsReply, StoreRevisionsRequest, TimeSpan, UpdateDocumentsReply, UpdateDocumentsRequest, UpdateLocalDocumentReply, UpdateLocalDocumentRequest,
  WrittenBlob,
} from '@sectional/core'

/**
 * A local replica that is not open yet: each call first waits for `open`. So a database can be used as soon as
 * it is created, although its shards reach the disks of its nodes a moment later. A rejecting `open` makes a
 * replica that is not there.
 */
export class PendingReplica implements ShardReplica {
  readonly #open: () => Promise<ShardReplica>

  constructor(open: () => Promise<ShardReplica>) {
    this.#open = open
  }

  async openDocument(request: OpenDocumentRequest, context: CallContext): Promise<DocumentSnapshot | null> {
    return (await this.#open()).openDocument(request, context)
  }

  async openRevisions(requests: readonly OpenRevisionsRequest[], context: CallContext): Promise<readonly (readonly OpenedRevision[])[]> {
    return (await this.#open()).openRevisions(requests, context)
  }

  async updateDocuments(request: UpdateDocumentsRequest, context: CallContext): Promise<UpdateDocumentsReply> {
    return (await this.#open()).updateDocuments(request, context)
  }

  async storeRevisions(request: StoreRevisionsRequest, context: CallContext): Promise<StoreRevisionsReply> {
    return (await this.#open()).storeRevisions(request, context)
  }

  async diffRevisions(requests: Parameters<ShardReplica['diffRevisions']>[0], context: CallContext): Promise<readonly ReplicaDiff[]> {
    return (await this.#open()).diffRevisions(requests, context)
  }

  async * scanDocuments(request: ScanDocumentsRequest, context: CallContext): AsyncIterable<readonly DocumentRow[]> {
    yield * (await this.#open()).scanDocuments(request, context)
  }

  async countDocuments(request: { readonly before?: IdBound; readonly descending: boolean }, context: CallContext): Promise<number> {
    return (await this.#open()).countDocuments(request, context)
  }

  async * scanChanges(request: ScanChangesRequest, context: CallContext): AsyncIterable<readonly ChangeRow[]> {
    yield * (await this.#open()).scanChanges(request, context)
  }

  async countChanges(since: number, context: CallContext): Promise<number> {
    return (await this.#open()).countChanges(since, context)
  }

  async waitForChange(seen: ReplicaCheckpoint, context: CallContext): Promise<ReplicaCheckpoint> {
    return (await this.#open()).waitForChange(seen, context)
  }

  async translateCheckpoints(read: readonly ReplicaCheckpoint[], context: CallContext): Promise<number> {
    return (await this.#open()).translateCheckpoints(read, context)
  }

  async openLocalDocuments(ids: readonly string[], context: CallContext): Promise<readonly (LocalDocument | null)[]> {
    return (await this.#open()).openLocalDocuments(ids, context)
  }

  async updateLocalDocument(request: UpdateLocalDocumentRequest, context: CallContext): Promise<UpdateLocalDocumentReply> {
    return (await this.#open()).updateLocalDocument(request, context)
  }

  async * scanLocalDocuments(request: ScanLocalDocumentsRequest, context: CallContext): AsyncIterable<readonly LocalDocument[]> {
    yield * (await this.#open()).scanLocalDocuments(request, context)
  }

  async purgeDocuments(request: PurgeDocumentsRequest, context: CallContext): Promise<PurgeDocumentsReply> {
    return (await this.#open()).purgeDocuments(request, context)
  }

  async * scanPurges(since: number, context: CallContext): AsyncIterable<readonly PurgeRow[]> {
    yield * (await this.#open()).scanPurges(since, context)
  }

  async trimPurges(sequence: number, context: CallContext): Promise<void> {
    return (await this.#open()).trimPurges(sequence, context)
  }

  async partitionInfo(partition: string, context: CallContext): Promise<PartitionInfo> {
    return (await this.#open()).partitionInfo(partition, context)
  }

  async compactShard(context: CallContext): Promise<void> {
    return (await this.#open()).compactShard(context)
  }

  async timeSpans(request: { readonly clear: boolean }, context: CallContext): Promise<readonly TimeSpan[]> {
    return (await this.#open()).timeSpans(request, context)
  }

  async replicaInfo(context: CallContext): Promise<ReplicaInfo> {
    return (await this.#open()).replicaInfo(context)
  }

  async digestDocuments(bucketCount: number, context: CallContext): Promise<DigestBuckets> {
    return (await this.#open()).digestDocuments(bucketCount, context)
  }

  async * scanDigestBucket(bucketCount: number, bucket: number, context: CallContext): AsyncIterable<readonly DocumentLeaves[]> {
    yield * (await this.#open()).scanDigestBucket(bucketCount, bucket, context)
  }

  async writeBlob(chunks: AsyncIterable<Uint8Array>, context: CallContext): Promise<WrittenBlob> {
    return (await this.#open()).writeBlob(chunks, context)
  }

  async * readBlob(hash: string, span: BlobSpan | null, context: CallContext): AsyncIterable<Uint8Array> {
    yield * (await this.#open()).readBlob(hash, span, context)
  }

  async hasBlobs(hashes: readonly string[], context: CallContext): Promise<readonly boolean[]> {
    return (await this.#open()).hasBlobs(hashes, context)
  }
}
