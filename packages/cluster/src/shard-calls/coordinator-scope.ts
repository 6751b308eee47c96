import type { CallContext, ShardId } from '@sectional/core'
import type { Runtime } from '@sectional/runtime'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { BackgroundWork, NodeWindow } from './background-work.ts'
import type { ChangeWatches } from '../replicas/change-watches.ts'
import type { CoordinatorMetrics } from './coordinator-metrics.ts'
import type { CoordinatorOptions } from '../contracts/coordinator-options.ts'
import type { OperationContext } from '../contracts/coordinator.ts'
import type { Peer, ReplicaAccess, ShardPlace } from '../replicas/replica-access.ts'
import type { ReplicaHealth } from '../replicas/replica-health.ts'
import type { ReplicaHistories } from '../replicas/replica-histories.ts'
import type { ReplicaStandings } from '../replicas/replica-standings.ts'

/** What every operation of one node's coordinator works with. */
export interface CoordinatorScope {
  readonly runtime: Runtime
  readonly options: CoordinatorOptions
  readonly access: ReplicaAccess
  readonly readHealth: ReplicaHealth
  readonly decisionHealth: ReplicaHealth
  readonly metrics: CoordinatorMetrics
  readonly background: BackgroundWork
  readonly stores: NodeWindow
  readonly repairs: RepairRequests
  readonly histories: ReplicaHistories
  readonly watches: ChangeWatches
  readonly standings: ReplicaStandings
  readonly blobRepairs: BlobRepairRequests
  /** Tells anti-entropy that a replica lacks revisions that others confirmed. */
  readonly reportMissed: (shard: ShardId, node: string) => void
}

export interface RepairRequests {
  /** Makes the replicas of a document equal, in the background. */
  request(db: DatabaseRecord, place: ShardPlace, id: string): void
}

export interface BlobRepairRequests {
  /** Writes content anew on a replica where it is missing or damaged, in the background. */
  request(place: ShardPlace, peer: Peer, hash: string): void
}

/** A call that ends with its client. */
export function readCall(scope: CoordinatorScope, context: OperationContext): CallContext {
  return { timeoutMs: scope.options.readTimeoutMs, signal: context.signal, requestId: context.requestId }
}

/** A point read of this node's own disk answers on the spot: the client's signal costs more to make than it could save. */
export function localReadCall(scope: CoordinatorScope, context: OperationContext): CallContext {
  return { timeoutMs: scope.options.readTimeoutMs, requestId: context.requestId }
}

/** A call that goes on when its client is gone: half a write helps nobody. */
export function writeCall(timeoutMs: number, context: Pick<OperationContext, 'requestId'>): CallContext {
  return { timeoutMs, requestId: context.requestId }
}
