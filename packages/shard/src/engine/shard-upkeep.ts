import type {
  CallContext, DigestBuckets, DocumentLeaves, PartitionInfo, ReplicaInfo, ScanDigestBucketRequest, ShardId,
  UpkeepReplica,
} from '@sectional/core'
import type { ReplicaCalls } from '../calls/replica-calls.ts'
import type { Compactor } from '../compaction/compactor.ts'
import type { CompactedShard } from '../compaction/shard-compaction.ts'
import { digestDocuments, scanDigestBucket } from '../verbs/digest.ts'
import { partitionInfo } from '../verbs/partition-info.ts'
import { replicaInfo } from '../verbs/replica-info.ts'

/** The upkeep verbs of one replica. */
export class ShardUpkeep implements UpkeepReplica {
  /** True after an absence, until the replica has fetched the changes of its peers. The cluster sets it. */
  catchingUp = false
  readonly #calls: ReplicaCalls
  readonly #shard: ShardId
  readonly #compacted: CompactedShard
  readonly #compactor: Compactor

  constructor(calls: ReplicaCalls, shard: ShardId, compacted: CompactedShard, compactor: Compactor) {
    this.#calls = calls
    this.#shard = shard
    this.#compacted = compacted
    this.#compactor = compactor
  }

  replicaInfo(context: CallContext): Promise<ReplicaInfo> {
    const { records, writer } = this.#compacted
    return this.#calls.read(context, () => {
      const identity = {
        history: this.#calls.history, catchingUp: this.catchingUp,
        compacting: this.#compactor.isCompacting(this.#shard),
      }
      return replicaInfo(records, identity, () => writer.committed())
    })
  }

  partitionInfo(partition: string, context: CallContext): Promise<PartitionInfo> {
    return this.#calls.read(context, () => partitionInfo(this.#compacted.records, partition))
  }

  compactShard(context: CallContext): Promise<void> {
    return this.#calls.answer(context, () => this.#compactor.request(this.#shard, this.#compacted))
  }

  digestDocuments(bucketCount: number, context: CallContext): Promise<DigestBuckets> {
    return this.#calls.read(context, () => digestDocuments(this.#compacted.records, bucketCount))
  }

  scanDigestBucket(request: ScanDigestBucketRequest, context: CallContext): AsyncGenerator<readonly DocumentLeaves[]> {
    return this.#calls.pages(context, () => scanDigestBucket(this.#compacted.records, request))
  }
}
