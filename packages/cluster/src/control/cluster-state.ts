/**
 * What the control plane holds (docs/architecture.md#two-planes): the value that the replicated log builds. Plain JSON,
 * never changed in place: `apply` (state-machine.ts) gives a new value and shares what did not change.
 */
import type { HashRange } from '@sectional/core'
import type { RecordedStart } from './node-start.ts'

export interface ClusterState {
  readonly clusterId: string
  /** Last applied log index; also the epoch that answers and shard maps carry. */
  readonly index: number
  readonly nodes: Readonly<Record<string, NodeRecord>>
  /** In the order of their names. `DatabaseMap` tells what differs between two states. */
  readonly databases: ReadonlyMap<string, DatabaseRecord>
  /** Cluster-wide settings, such as the session secret; `section/key` -> text. */
  readonly settings: Readonly<Record<string, string>>
  /** Ids of the clusters from whose remains an operator formed this one; absent: none. */
  readonly replaces?: readonly string[]
}

export interface NodeRecord {
  readonly name: string
  /** Cluster listener, `host:port`. */
  readonly address: string
  readonly zone: string | null
  /** The newest start of its process that the log knows; undefined: it has announced none yet. */
  readonly start?: RecordedStart
}

export interface DatabaseRecord {
  readonly name: string
  /** New for every creation: a re-created name never meets its old data. */
  readonly incarnation: string
  readonly partitioned: boolean
  /** Wanted replicas of each shard; fewer stand in `shards` while fewer nodes exist. */
  readonly n: number
  /** Ranges in ascending order, covering the hash space. */
  readonly shards: readonly ShardRecord[]
  readonly security: DatabaseSecurity
  readonly revsLimit: number
  readonly purgedInfosLimit: number
  /** `_auto_purge`: empty object when unset. */
  readonly autoPurge: Readonly<Record<string, unknown>>
}

export interface ShardRecord {
  readonly range: HashRange
  /** In the order in which they are asked to decide edits. */
  readonly replicas: readonly ReplicaRecord[]
}

export interface ReplicaRecord {
  readonly node: string
  /**
   * A replica that was added later and still fetches the documents: it receives writes and anti-entropy,
   * but counts towards no quorum until it is filled.
   */
  readonly filling: boolean
}

/** The `_security` object as its client wrote it. Empty: everybody may read and write. */
export type DatabaseSecurity = Readonly<Record<string, unknown>>

/** What a new database has, so that nobody but administrators gets in before its `_security` is set. */
export const adminOnlySecurity: DatabaseSecurity = Object.freeze({ members: { roles: ['_admin'] }, admins: { roles: ['_admin'] } })

/** The replicas that quorums count. */
export function activeReplicas(shard: ShardRecord): readonly ReplicaRecord[] {
  return shard.replicas.filter(replica => !replica.filling)
}
