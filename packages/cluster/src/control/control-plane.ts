/** The control plane as the coordinator, anti-entropy and the HTTP layer see it. */
import type { NodeQuestion } from '@sectional/core'
import type { ClusterState, DatabaseRecord, DatabaseSecurity } from './cluster-state.ts'

export interface ControlPlane {
  readonly node: string
  /** The newest state this node has applied; null while it is not admitted to a cluster. */
  state(): ClusterState | null
  /** Called after each applied change. Returns an unsubscribe function. */
  onChange(listener: (state: ClusterState) => void): () => void
  /** Why this node serves no data now, or null when it does. */
  unavailableReason(): string | null
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
  /** Removes a member that was emptied or is lost. */
  removeNode(node: string): Promise<void>

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
