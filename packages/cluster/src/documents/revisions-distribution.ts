import { ReplicaError } from '@sectional/core'
import type { StoreRevisionsReply, StoreRevisionsRequest } from '@sectional/core'
import { provideBlobs } from '../attachments/blob-transfer.ts'
import { namedBlobs } from '../replicas/blob-copy.ts'
import { writeCall } from '../shard-calls/coordinator-scope.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import type { OperationContext } from '../contracts/coordinator.ts'
import type { Peer, ShardPlace } from '../replicas/replica-access.ts'
import { asReplicaError } from '../replicas/replica-failures.ts'
import { SilenceWatch } from '../shard-calls/silence-watch.ts'
import { WriteTally } from './write-tally.ts'

export interface Distribution {
  /** `accepted`: the write is durable on at least one replica, but on fewer than w after all have replied. */
  readonly verdict: 'met' | 'accepted' | 'failed'
  readonly errors: readonly ReplicaError[]
  /** Positions in `revisions` for which a replica that confirmed them knew a rival (`StoreRevisionsReply`). */
  readonly rivals: ReadonlySet<number>
  /** Positions in `revisions` that a replica refused (`StoreRevisionsReply`). Others may have stored them. */
  readonly refused: ReadonlySet<number>
}

/**
 * Sends decided revisions to every replica except the one that already has them. Resolves as soon as w copies are
 * durable; the remaining calls continue as background work. Filling replicas receive the revisions but do not count. If
 * the shard's replicas change meanwhile, new replicas receive the revisions too, and w must be met by both the old and
 * the new map. A silent replica (silence-watch.ts) is sent the revisions but not waited for. Replicas that have not
 * confirmed the revisions by then are recorded (unconfirmed-writes.ts).
 *
 * @param decider the replica that made the revisions durable when it decided; null when no replica has them yet
 * @param w the client's `w`; undefined for the default
 */
export function distributeRevisions(
  scope: CoordinatorScope, place: ShardPlace, request: StoreRevisionsRequest, decider: Peer | null,
  w: number | undefined, context: OperationContext,
): Promise<Distribution> {
  return new Promise(resolve => {
    const errors: ReplicaError[] = []
    const rivals = new Set<number>()
    const refused = new Set<number>()
    const tally = new WriteTally(scope.access, place, w)
    const asked = new Set<string>()
    /** For each replica that has not confirmed the write: whether it stores it in the end. */
    const unconfirmed = new Map<string, Promise<boolean>>()
    if (decider !== null) {
      asked.add(decider.node)
      tally.durable(decider.node)
    }
    let settled = false
    const watches: SilenceWatch[] = []
    const failed = (peer: Peer, error: ReplicaError): void => {
      errors.push(error)
      tally.failed(peer.node)
      settle()
    }
    const send = (to: ShardPlace): void => {
      const peers = scope.access.peers(to).filter(peer => !asked.has(peer.node))
      if (peers.length === 0) return
      const watch = new SilenceWatch(scope, peers.filter(peer => scope.access.isReachable(peer.node)), peer =>
        failed(peer, new ReplicaError('timeout', `${peer.node} is silent`)))
      watches.push(watch)
      for (const peer of peers) {
        asked.add(peer.node)
        const stored = storeOn(scope, place, peer, request, context).then(reply => {
          watch.answered(peer)
          if (reply instanceof ReplicaError) {
            failed(peer, reply)
            return false
          }
          unconfirmed.delete(peer.node)
          for (const index of settled ? [] : reply.rivals) rivals.add(index)
          for (const index of settled ? [] : reply.refused ?? []) refused.add(index)
          tally.durable(peer.node)
          settle()
          return true
        })
        unconfirmed.set(peer.node, stored)
        scope.background.track(stored)
      }
    }
    const settle = (): void => {
      if (settled) return
      const now = scope.access.now(place)
      if (now !== place) send(now)
      const verdict = tally.verdict()
      if (verdict === 'waiting') return
      settled = true
      for (const watch of watches) watch.cancel()
      scope.metrics.write(verdict)
      if (verdict !== 'failed') {
        for (const [node, stored] of unconfirmed) scope.unconfirmed.acknowledged(place.id, node, stored)
      }
      resolve({ verdict, errors, rivals, refused })
    }
    send(place)
    settle()
  })
}

/** Returns the reply of a replica that has the revisions on disk, or the error that prevented it. */
async function storeOn(
  scope: CoordinatorScope, place: ShardPlace, peer: Peer, request: StoreRevisionsRequest, context: OperationContext,
): Promise<StoreRevisionsReply | ReplicaError> {
  const bytes = requestBytes(request)
  try {
    if (!scope.access.isReachable(peer.node)) throw new ReplicaError('unreachable', `no link to ${peer.node}`)
    if (!scope.stores.enter(peer.node, bytes)) {
      throw new ReplicaError('overloaded', `too many writes under way to ${peer.node}`)
    }
    let reply
    try {
      reply = await storeWithBlobs(scope, place, peer, request, context)
    } finally {
      scope.stores.leave(peer.node, bytes)
    }
    scope.decisionHealth.answered(peer.node)
    return reply
  } catch (error) {
    const failure = asReplicaError(error)
    if (failure.code === 'timeout') scope.decisionHealth.silent(peer.node)
    scope.reportMissed(place.id, peer.node)
    return failure
  }
}

/**
 * Stores the revisions on a replica. A replica that lacks content of attachments, because it was away when that was
 * written, receives it from other replicas first.
 */
async function storeWithBlobs(
  scope: CoordinatorScope, place: ShardPlace, peer: Peer, request: StoreRevisionsRequest, context: OperationContext,
): Promise<StoreRevisionsReply> {
  const call = writeCall(scope.options.storeTimeoutMs, context)
  try {
    return await peer.replica.storeRevisions(request, call)
  } catch (error) {
    if (asReplicaError(error).code !== 'missing_blob') throw error
    await provideBlobs(scope, peer, namedBlobs(request.revisions), place, context.requestId)
    return await peer.replica.storeRevisions(request, call)
  }
}

function requestBytes(request: StoreRevisionsRequest): number {
  let bytes = 0
  for (const revision of request.revisions) bytes += revision.body.length
  for (const local of request.locals ?? []) bytes += local.body?.length ?? 0
  return bytes
}
