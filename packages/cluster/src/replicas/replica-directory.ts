import type { ShardId, ShardReplica } from '@sectional/core'

/** Finds replicas for the coordinator and anti-entropy: local engines and stubs of remote replicas. */
export interface ReplicaDirectory {
  /**
   * Always returns a replica. Calls to one that does not exist or cannot be reached reject with `not_hosted` or
   * `unreachable`.
   */
  replica(node: string, shard: ShardId): ShardReplica
  /** Returns true for this node and for peers with an open link. */
  isConnected(node: string): boolean
  /**
   * Returns true while this node's own replica may have missed edits (after an absence) that it has not fetched yet.
   */
  isCatchingUp(shard: ShardId): boolean
}
