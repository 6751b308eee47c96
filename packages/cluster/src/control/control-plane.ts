/** The interface of the control plane for the coordinator, anti-entropy and the HTTP layer. */
import type { HashRange, NodeQuestion } from '@sectional/core'
import type { ClusterState, DatabaseRecord, DatabaseSecurity } from './cluster-state.ts'

export interface ControlPlane {
  readonly node: string
  /** The newest state that this node has applied; null while it is not admitted to a cluster. */
  state(): ClusterState | null
  /** Calls `listener` after each batch of applied changes. Returns an unsubscribe function. */
  onChange(listener: (state: ClusterState) => void): () => void
  /**
   * The reason why requests for data are answered with 503 now; null when this node serves. The conditions are in
   * readiness.ts.
   */
  unavailableReason(): string | null
  /** The reason why writes are answered with 503 now. Not null while `unavailableReason` is not null. */
  writesRefusedReason(): string | null
  /**
   * The reason why `/_up` answers 404, so that load balancers choose other nodes. Not null while one of the reasons
   * above is not null.
   */
  notReadyReason(): string | null
  /** Sorted names of this node and of the peers with an open link. */
  connectedNodes(): readonly string[]
  leader(): string | null

  /**
   * Creates a database. This and the following changes resolve once they are applied on this node.
   * @throws ApiError `service_unavailable` with a reason and a Retry-After header while no majority of the voters
   *   answers
   */
  createDatabase(name: string, options: CreateDatabaseOptions): Promise<DatabaseRecord>
  /**
   * Resolves to `accepted` when the log cannot be reached: the deletion is durable on this node and applied later
   * (status 202).
   */
  deleteDatabase(name: string): Promise<'deleted' | 'accepted'>
  /**
   * @param replaced the security object from which the new one was derived; absent: any object is replaced
   * @throws ApiError `conflict` when the database has another one than `replaced` by now, which `state()` then shows
   */
  setSecurity(name: string, security: DatabaseSecurity, replaced?: DatabaseSecurity): Promise<void>
  setDatabaseOption(name: string, option: DatabaseOption): Promise<void>
  setSetting(section: string, key: string, value: string | null): Promise<void>
  /**
   * Removes a member that was emptied or is lost. No request or command of this version calls this; tests do.
   * @throws ApiError `not_found` when the node is not a member
   */
  removeNode(node: string): Promise<void>
  /**
   * Anti-entropy calls this when a filling replica has every document that its peers had. Quorums count the replica
   * from then on. Repeated calls are harmless.
   */
  replicaFilled(incarnation: string, range: HashRange, node: string): Promise<void>
  /**
   * Reports that part of a replica is damaged. The replica then counts towards no quorum until it is filled again.
   * Resolves to false when no other replica of the shard counts, because nothing could then fill it.
   */
  replicaDamaged(incarnation: string, range: HashRange, node: string): Promise<boolean>

  /**
   * Call this for a name that `state()` does not list, before a client receives 404. Asks the leader whether this node
   * has missed the creation of the database, waits until this node has caught up (at most about a second, and not at
   * all while no leader is reachable) and looks again. Concurrent calls are merged, so that many wrong names cost the
   * leader little.
   * @throws ApiError `service_unavailable` when this node has not caught up with a leader since its start, or its
   *   metadata may be old
   */
  confirmAbsent(name: string): Promise<DatabaseRecord | undefined>

  /**
   * Asks another member, or this node itself.
   * @throws ApiError `nodedown` when the member does not answer, `not_found` when the node is not a member
   */
  ask(node: string, question: NodeQuestion, argument: unknown): Promise<unknown>
}

export interface CreateDatabaseOptions {
  /** 1 to 256. */
  readonly q: number
  /** At least 1. Fewer replicas exist while the cluster has fewer members; the others are added when members join. */
  readonly n: number
  readonly partitioned: boolean
}

export type DatabaseOption =
  | { readonly revsLimit: number }
  | { readonly purgedInfosLimit: number }
  | { readonly autoPurge: Readonly<Record<string, unknown>> }
