import type { ShardId, ShardReplica } from '@sectional/core'

/** Where the coordinator and anti-entropy find replicas: local engines and stubs of remote ones alike. */
export interface ReplicaDirectory {
  /** Always a replica: calls on one that is not there reject with `not_hosted` or `unreachable`. */
  replica(node: string, shard: ShardId): ShardReplica
  /** True for this node and for peers with an open link. */
  isConnected(node: string): boolean
  /** Whether this node's own replica may have missed edits (after an absence) that it has not fetched yet. */
  isCatchingUp(shard: ShardId): boolean
}
