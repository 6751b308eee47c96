import { type CallContext, PageBudget, type ShardId } from '@sectional/core'
import type { Runtime } from '@sectional/runtime'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { BackgroundWork, NodeWindow } from './background-work.ts'
import type { ChangeWatches } from '../replicas/change-watches.ts'
import type { CoordinatorMetrics } from './coordinator-metrics.ts'
import type { CoordinatorOptions } from '../contracts/coordinator-options.ts'
import type { DesignDocuments } from '../contracts/design-document.ts'
import type { OperationContext } from '../contracts/coordinator.ts'
import type { Peer, ReplicaAccess, ShardPlace } from '../replicas/replica-access.ts'
import type { ReplicaHealth } from '../replicas/replica-health.ts'
import type { ReplicaHistories } from '../replicas/replica-histories.ts'
import type { ReplicaStandings } from '../replicas/replica-standings.ts'
import type { UnconfirmedWrites } from '../replicas/unconfirmed-writes.ts'

/** The dependencies that all operations of one node's coordinator share. */
export interface CoordinatorScope {
  readonly runtime: Runtime
  readonly options: CoordinatorOptions
  readonly access: ReplicaAccess
  readonly readHealth: ReplicaHealth
  readonly decisionHealth: ReplicaHealth
  readonly metrics: CoordinatorMetrics
  readonly background: BackgroundWork
  readonly stores: NodeWindow
  /** Limits the pages of all lists of rows that are being sent. */
  readonly pages: PageBudget
  readonly repairs: RepairRequests
  readonly histories: ReplicaHistories
  readonly watches: ChangeWatches
  readonly standings: ReplicaStandings
  readonly blobRepairs: BlobRepairRequests
  readonly unconfirmed: UnconfirmedWrites
  readonly designs: KnownDesignDocuments
  readonly compactions: CompactionRequests
  /** Reports to anti-entropy that a replica lacks revisions that others confirmed. */
  readonly reportMissed: (shard: ShardId, node: string) => void
}

/** The cache of design documents (design-documents/design-document-cache.ts). */
export interface KnownDesignDocuments {
  /** Returns the design documents if they can be used without a wait, otherwise undefined. */
  current(db: DatabaseRecord): DesignDocuments | undefined
  open(db: DatabaseRecord): Promise<DesignDocuments>
  /** Call this before a write of a design document is answered that this node has coordinated. */
  written(incarnation: string): void
}

/** The compactions that clients of this node have requested (coordinator/requested-compactions.ts). */
export interface CompactionRequests {
  requested(db: DatabaseRecord): void
  isRunning(scope: CoordinatorScope, db: DatabaseRecord, context: OperationContext): Promise<boolean>
}

export interface RepairRequests {
  /** Makes the replicas of a document equal, in the background. */
  request(db: DatabaseRecord, place: ShardPlace, id: string): void
}

export interface BlobRepairRequests {
  /** Replaces missing or damaged content on a replica, in the background. */
  request(place: ShardPlace, peer: Peer, hash: string): void
}

/** Makes the `pages` of a scope. */
export function newPages({ listPageRows, listPageBytes, listPagesBytes }: CoordinatorOptions): PageBudget {
  return new PageBudget({ pageRows: listPageRows, pageBytes: listPageBytes }, listPagesBytes)
}

/** The context of a call that is cancelled together with its client's request. */
export function readCall(scope: CoordinatorScope, context: OperationContext): CallContext {
  return { timeoutMs: scope.options.readTimeoutMs, signal: context.signal, requestId: context.requestId }
}

/**
 * The context of a point read from this node's own disk. It is so fast that the client's signal would cost more to
 * create than it could save.
 */
export function localReadCall(scope: CoordinatorScope, context: OperationContext): CallContext {
  return { timeoutMs: scope.options.readTimeoutMs, requestId: context.requestId }
}

/** The context of a call that continues after its client has gone: a write must not stop half way. */
export function writeCall(timeoutMs: number, context: Pick<OperationContext, 'requestId'>): CallContext {
  return { timeoutMs, requestId: context.requestId }
}
