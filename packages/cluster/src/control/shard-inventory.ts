/** Which shards a node must host by the cluster's metadata, and which of those it has are garbage. */
import { formatRange } from '@sectional/core'
import type { ShardId } from '@sectional/core'
import type { ClusterState } from './cluster-state.ts'

/** What the node that owns the engine offers; the server wires it. */
export interface ShardHosting {
  /** Shards that exist on this node's disk. */
  list(): readonly ShardId[]
  /** Opens, or makes, an empty replica. */
  create(shard: ShardId): Promise<void>
  /** Reclaims a replica's space; may take long. */
  drop(shard: ShardId): Promise<void>
}

export interface InventoryDifference {
  readonly create: readonly ShardId[]
  /** In no map any more: its database was deleted, or the replica moved away. */
  readonly drop: readonly ShardId[]
}

/** The shards that have a replica on the node, filling ones included. */
export function plannedShards(state: ClusterState, node: string): readonly ShardId[] {
  const planned: ShardId[] = []
  for (const { incarnation, shards } of state.databases.values()) {
    for (const { range, replicas } of shards) if (replicas.some(replica => replica.node === node)) planned.push({ incarnation, range })
  }
  return planned
}

/**
 * `drop` may be followed only while `ControlPlaneNode.confirmed()` holds: right after a restart a node's
 * metadata may be a little older than its shards, and what is merely new must not look like garbage.
 */
export function compareInventory(state: ClusterState, node: string, hosted: readonly ShardId[]): InventoryDifference {
  const planned = plannedShards(state, node)
  const wanted = new Set(planned.map(shardKey))
  const present = new Set(hosted.map(shardKey))
  return { create: planned.filter(shard => !present.has(shardKey(shard))), drop: hosted.filter(shard => !wanted.has(shardKey(shard))) }
}

function shardKey({ incarnation, range }: ShardId): string { return `${incarnation}/${formatRange(range)}` }
