import type { ShardId, ShardReplica } from '@sectional/core'

/** Receives reports of damaged records and blobs. The same damage may be reported more than once. */
export interface DamageListener {
  damagedReplica(shard: ShardId): void
  /** @param shards the shards of this node that reference the blob */
  damagedBlob(hash: string, shards: readonly ShardId[]): void
}

/**
 * Receives a durable change of a replica. `documents` is false when only local documents changed. `designs` is true
 * when a design document may have changed.
 */
export type CommitListener = (shard: ShardId, documents: boolean, designs: boolean) => void

/** The replicas on this node. */
export interface LocalReplicas {
  shards(): readonly ShardId[]
  /** Returns undefined when this node does not (or no longer) host the shard. */
  replica(shard: ShardId): ShardReplica | undefined
  /** While this is true, the replica declines to decide edits. */
  setCatchingUp(shard: ShardId, catchingUp: boolean): void
  /** Registers a listener for damage on this node's disk. Returns an unsubscribe function. */
  onDamage(listener: DamageListener): () => void
  /**
   * Returns true when the last process that wrote the replica did not stop in order. Its disk may then lack changes
   * that its checkpoints cover, so it has caught up only after digests were compared with its peers.
   */
  isUncompared(shard: ShardId): boolean
  /**
   * Call this when the replica was compared with every reachable peer and these were a majority of the shard, or when
   * it has no peers.
   */
  compared(shard: ShardId): void
  /**
   * Calls back when a replica failed to store revisions or purges, or when a peer reported this. Returns an unsubscribe
   * function.
   */
  onMissed(listener: (shard: ShardId) => void): () => void
  /** Replaces a replica by one with a new history that contains its sound records. */
  rebuild(shard: ShardId): Promise<unknown>
  /** Calls back after each durable change. Returns an unsubscribe function. */
  onCommit(listener: CommitListener): () => void
}
