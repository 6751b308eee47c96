/** The shards that a node must host according to the cluster's metadata. */
import { compareRanges } from '@sectional/core'
import type { ShardId } from '@sectional/core'
import type { ClusterState, DatabaseRecord } from './cluster-state.ts'
import { DatabaseMap } from './database-map.ts'

/** Returns the shards of a database that have a replica on the node, including filling replicas. */
export function shardsOn(node: string, { incarnation, shards }: DatabaseRecord): readonly ShardId[] {
  return shards.filter(({ replicas }) => replicas.some(replica => replica.node === node))
    .map(({ range }) => ({ incarnation, range }))
}

/** Returns the database of a shard that has a replica on the node; undefined when the metadata places none there. */
export function databaseOn(
  node: string, state: ClusterState, { incarnation, range }: ShardId,
): DatabaseRecord | undefined {
  const database = DatabaseMap.withIncarnation(state.databases, incarnation)
  const shard = database?.shards.find(candidate => compareRanges(candidate.range, range) === 0)
  return shard?.replicas.some(replica => replica.node === node) === true ? database : undefined
}
