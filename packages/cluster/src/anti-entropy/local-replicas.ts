import type { ShardId, ShardReplica } from '@sectional/core'

/** The replicas that live on this node. */
export interface LocalReplicas {
  shards(): readonly ShardId[]
  /** Undefined when the shard is not hosted here (yet, or any more). */
  replica(shard: ShardId): ShardReplica | undefined
  /** While true, the replica declines to decide edits. */
  setCatchingUp(shard: ShardId, catchingUp: boolean): void
  /** Calls back after each durable change of documents (`documents`) or only local documents. Returns an unsubscribe function. */
  onCommit(listener: (shard: ShardId, documents: boolean) => void): () => void
}
