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
  /** `accepted`: durable somewhere, but on fewer than w replicas after all have replied. */
  readonly verdict: 'met' | 'accepted' | 'failed'
  readonly errors: readonly ReplicaError[]
  /** Places in `revisions` of those of which a replica that has confirmed them knew a rival (`StoreRevisionsReply`). */
  readonly rivals: ReadonlySet<number>
}

/**
 * Sends decided revisions to every replica but the one that has them already. Resolves as soon as w copies are
 * durable; the rest goes on as background work. Filling replicas receive and do not count. A replica that the shard got
 * meanwhile receives them too, and w counts by the old map and the new. A silent replica (`silence-watch.ts`) is sent them
 * and not waited for.
 *
 * @param decider the replica that made the revisions durable when it decided; null: none has them yet
 * @param w as the client gave it
 */
export function distributeRevisions(
  scope: CoordinatorScope, place: ShardPlace, request: StoreRevisionsRequest, decider: Peer | null, w: number | undefined, context: OperationContext,
): Promise<Distribution> {
  return new Promise(resolve => {
    const errors: ReplicaError[] = []
    const rivals = new Set<number>()
    const tally = new WriteTally(scope.access, place, w)
    const asked = new Set<string>()
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
        scope.background.track(storeOn(scope, place, peer, request, context).then(reply => {
          watch.answered(peer)
          if (reply instanceof ReplicaError) return failed(peer, reply)
          for (const index of settled ? [] : reply.rivals) rivals.add(index)
          tally.durable(peer.node)
          settle()
        }))
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
      resolve({ verdict, errors, rivals })
    }
    send(place)
    settle()
  })
}

/** The reply of a replica that has the revisions on disk, or why it has not. */
async function storeOn(
  scope: CoordinatorScope, place: ShardPlace, peer: Peer, request: StoreRevisionsRequest, context: OperationContext,
): Promise<StoreRevisionsReply | ReplicaError> {
  const bytes = requestBytes(request)
  try {
    if (!scope.access.isReachable(peer.node)) throw new ReplicaError('unreachable', `no link to ${peer.node}`)
    if (!scope.stores.enter(peer.node, bytes)) throw new ReplicaError('overloaded', `too many writes under way to ${peer.node}`)
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

/** A replica that was away while content was written gets it from the others first. */
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
