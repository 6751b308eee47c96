/** The control plane as the coordinator, anti-entropy and the HTTP layer see it. */
import type { HashRange, NodeQuestion } from '@sectional/core'
import type { ClusterState, DatabaseRecord, DatabaseSecurity } from './cluster-state.ts'

export interface ControlPlane {
  readonly node: string
  /** The newest state this node has applied; null while it is not admitted to a cluster. */
  state(): ClusterState | null
  /** Called after each applied change. Returns an unsubscribe function. */
  onChange(listener: (state: ClusterState) => void): () => void
  /** Why requests for data are answered 503 now, or null when this node serves. See readiness.ts for the conditions. */
  unavailableReason(): string | null
  /** Why writes are answered 503 now; never null while `unavailableReason` gives a reason. */
  writesRefusedReason(): string | null
  /** Why `/_up` answers 404, so that load balancers choose other nodes; never null while one of the above gives a reason. */
  notReadyReason(): string | null
  /** Peers whose link is open, and this node: sorted names. */
  connectedNodes(): readonly string[]
  leader(): string | null

  /**
   * Each change resolves once it is applied on this node.
   * @throws ApiError `service_unavailable` with a plain reason and Retry-After while no majority answers
   */
  createDatabase(name: string, options: CreateDatabaseOptions): Promise<DatabaseRecord>
  /** `accepted`: the log is out of reach; the intent is durable on this node and applied later (202). */
  deleteDatabase(name: string): Promise<'deleted' | 'accepted'>
  setSecurity(name: string, security: DatabaseSecurity): Promise<void>
  setDatabaseOption(name: string, option: DatabaseOption): Promise<void>
  setSetting(section: string, key: string, value: string | null): Promise<void>
  /** Removes a member that was emptied or is lost. @throws ApiError `not_found` when it is no member */
  removeNode(node: string): Promise<void>
  /** Anti-entropy says so once a filling replica has what its peers had: from then on quorums count it. Repeating is harmless. */
  replicaFilled(incarnation: string, range: HashRange, node: string): Promise<void>
  /**
   * Part of a replica is damaged: until it is filled again it counts towards no quorum. Resolves with false where no other replica of
   * the shard counts, so that nobody could fill it.
   */
  replicaDamaged(incarnation: string, range: HashRange, node: string): Promise<boolean>

  /**
   * For a name that `state()` does not list, before a client hears 404: asks the leader whether this node has
   * missed its creation, waits for it (at most about a second, and not at all while no leader is in reach) and
   * looks again. Calls are merged, so that a flood of wrong names costs the leader little.
   * @throws ApiError `service_unavailable` when this node has not heard a leader's word since it started
   */
  confirmAbsent(name: string): Promise<DatabaseRecord | undefined>

  /**
   * Asks another member (or this one).
   * @throws ApiError `nodedown` when it is a member without a link, `not_found` when it is none
   */
  ask(node: string, question: NodeQuestion, argument: unknown): Promise<unknown>
}

export interface CreateDatabaseOptions {
  /** 1..256. */
  readonly q: number
  /** At least 1; capped by the members that exist, and growing when they come. */
  readonly n: number
  readonly partitioned: boolean
}

export type DatabaseOption =
  | { readonly revsLimit: number }
  | { readonly purgedInfosLimit: number }
  | { readonly autoPurge: Readonly<Record<string, unknown>> }
