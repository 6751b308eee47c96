import type { ShardId, ShardReplica } from '@sectional/core'

/** Told of what is not as it was written; the same thing more than once. */
export interface DamageListener {
  damagedReplica(shard: ShardId): void
  /** @param shards those of this node that name it */
  damagedBlob(hash: string, shards: readonly ShardId[]): void
}

/** The replicas that live on this node. */
export interface LocalReplicas {
  shards(): readonly ShardId[]
  /** Undefined when the shard is not hosted here (yet, or any more). */
  replica(shard: ShardId): ShardReplica | undefined
  /** While true, the replica declines to decide edits. */
  setCatchingUp(shard: ShardId, catchingUp: boolean): void
  /** Calls back when something on this node's disk is not what was written. Returns an unsubscribe function. */
  onDamage(listener: DamageListener): () => void
  /**
   * The process that wrote the replica last did not end in order, so that its disk may lack what its checkpoints cover:
   * digests are compared with its peers before the replica has caught up.
   */
  isUncompared(shard: ShardId): boolean
  /** The replica was compared with every peer that was reachable, a majority of the shard, or has no peers. */
  compared(shard: ShardId): void
  /** Calls back when a replica failed to store revisions or purges, or was told that it did. Returns an unsubscribe function. */
  onMissed(listener: (shard: ShardId) => void): () => void
  /** Begins another life of a replica with what is sound in it. */
  rebuild(shard: ShardId): Promise<unknown>
  /** Calls back after each durable change of documents (`documents`) or only local documents. Returns an unsubscribe function. */
  onCommit(listener: (shard: ShardId, documents: boolean) => void): () => void
}
