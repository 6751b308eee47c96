/**
 * The state of the control plane (docs/architecture.md#two-planes), which the replicated log builds. It is plain JSON
 * that is never changed in place: `applyCommand` (state-machine.ts) returns a new value, which shares the unchanged
 * parts.
 */
import { hash } from 'node:crypto'
import type { HashRange } from '@sectional/core'
import type { RecordedStart } from './node-start.ts'

export interface ClusterState {
  readonly clusterId: string
  /** Index of the last applied log entry. */
  readonly index: number
  readonly nodes: Readonly<Record<string, NodeRecord>>
  /** Ordered by name. `DatabaseMap.changed` returns the differences between two states. */
  readonly databases: ReadonlyMap<string, DatabaseRecord>
  /** Cluster-wide settings, such as the session secret. Keys are `section/key`. */
  readonly settings: Readonly<Record<string, string>>
  /**
   * Ids of the clusters from whose data an operator formed this one (cluster-recovery.ts); absent when there are none.
   */
  readonly replaces?: readonly string[]
}

export interface NodeRecord {
  readonly name: string
  /** Address of the cluster listener, `host:port`. */
  readonly address: string
  readonly zone: string | null
  /** The newest start of the node's process that the log has recorded; undefined before the first one. */
  readonly start?: RecordedStart
}

export interface DatabaseRecord {
  readonly name: string
  /**
   * A random text that is new for every creation. A database that is created again under its old name therefore never
   * gets data of the deleted one.
   */
  readonly incarnation: string
  readonly partitioned: boolean
  /** Wanted replicas of each shard. Shards have fewer while the cluster has fewer nodes. */
  readonly n: number
  /** In ascending order of their ranges, which together cover the hash space. */
  readonly shards: readonly ShardRecord[]
  readonly security: DatabaseSecurity
  readonly revsLimit: number
  readonly purgedInfosLimit: number
  /** The `_auto_purge` object; empty when it was not set. */
  readonly autoPurge: Readonly<Record<string, unknown>>
}

export interface ShardRecord {
  readonly range: HashRange
  /** In the order in which the coordinator asks them to decide edits. */
  readonly replicas: readonly ReplicaRecord[]
}

export interface ReplicaRecord {
  readonly node: string
  /**
   * True for a replica that was added later and still fetches its documents. It receives writes and takes part in
   * anti-entropy, but counts towards no quorum until it is filled.
   */
  readonly filling: boolean
}

/** The `_security` object as the client wrote it. Empty: everybody may read and write. */
export type DatabaseSecurity = Readonly<Record<string, unknown>>

/** The security object of a new database. Only administrators have access before its `_security` is set. */
export const adminOnlySecurity: DatabaseSecurity = Object.freeze({
  members: { roles: ['_admin'] }, admins: { roles: ['_admin'] },
})

/**
 * Returns the hexadecimal SHA-256 of the JSON of a security object. It is equal on all nodes: the objects come from the
 * JSON of commands and snapshots, which keep the order of the members.
 */
export function securityDigest(security: DatabaseSecurity): string {
  return hash('sha256', JSON.stringify(security))
}

/** Returns the replicas that count towards quorums. */
export function activeReplicas(shard: ShardRecord): readonly ReplicaRecord[] {
  return shard.replicas.filter(replica => !replica.filling)
}
