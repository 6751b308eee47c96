import { createHash } from 'node:crypto'
import type {
  CallContext, DigestBuckets, DocumentLeaves, PartitionInfo, ReplicaInfo, ScanDigestBucketRequest, UpkeepReplica,
} from '../contracts/shard-replica.ts'
import { documentHash } from '../sharding/hash-ring.ts'
import { compareBytes } from './state-memory.ts'
import type { MemoryState } from './state-memory.ts'

/** The upkeep verbs of a `MemoryShardReplica`. */
export class MemoryUpkeep implements UpkeepReplica {
  readonly #state: MemoryState
  readonly #partitioned: boolean

  constructor(state: MemoryState, partitioned: boolean) {
    this.#state = state
    this.#partitioned = partitioned
  }

  async replicaInfo(context: CallContext): Promise<ReplicaInfo> {
    this.#state.check(context)
    const { history, sequence, documents, bodies, purgeSequence, purges, purgesSeen, seen, catchingUp } = this.#state
    const documentCount = this.#state.live().length
    const bytes = [...bodies.values()].reduce((sum, { body }) => sum + body.length, 0)
    return {
      history, sequence, documentCount, deletedCount: documents.size - documentCount,
      purgeSequence, oldestPurge: purges[0]?.sequence ?? 0, purgesSeen: Object.fromEntries(purgesSeen),
      compacting: false, sizes: { file: bytes, active: bytes, external: bytes }, seen: Object.fromEntries(seen),
      catchingUp,
    }
  }

  async partitionInfo(partition: string, context: CallContext): Promise<PartitionInfo> {
    this.#state.check(context)
    return this.partition(partition)
  }

  /** Returns the same as `partitionInfo`, at once. */
  partition(partition: string): PartitionInfo {
    const trees = [...this.#state.documents]
      .filter(([id]) => id.startsWith(`${partition}:`)).map(([, { tree }]) => tree)
    const external = trees.flatMap(tree => tree.leafNodes())
      .reduce((sum, leaf) => sum + (this.#state.body(leaf.bodyKey)?.body.length ?? 0), 0)
    const deletedCount = trees.filter(tree => tree.winner().deleted).length
    return { documentCount: trees.length - deletedCount, deletedCount, sizes: { active: external, external } }
  }

  async compactShard(context: CallContext): Promise<void> {
    this.#state.check(context)
    const { documents, bodies } = this.#state
    for (const [id, { tree, sequence }] of documents) {
      const { tree: compacted, released } = tree.releaseInnerBodies()
      for (const key of released) bodies.delete(key)
      documents.set(id, { tree: compacted, sequence })
    }
  }

  async digestDocuments(bucketCount: number, context: CallContext): Promise<DigestBuckets> {
    this.#state.check(context)
    return Array.from({ length: bucketCount }, (_, bucket) => {
      const hash = createHash('md5')
      for (const entry of this.#bucket(bucketCount, bucket)) hash.update(JSON.stringify(entry))
      return hash.digest('hex')
    })
  }

  scanDigestBucket(
    { bucketCount, bucket }: ScanDigestBucketRequest, context: CallContext,
  ): AsyncIterable<readonly DocumentLeaves[]> {
    return this.#state.pages(this.#bucket(bucketCount, bucket), undefined, context)
  }

  #bucket(bucketCount: number, bucket: number): DocumentLeaves[] {
    return [...this.#state.documents]
      .filter(([id]) => documentHash(id, this.#partitioned) % bucketCount === bucket)
      .map(([id, { tree }]) => ({ id, leaves: tree.leaves() })).sort((a, b) => compareBytes(a.id, b.id))
  }
}
