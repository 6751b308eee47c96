import { ReplicaError } from '@sectional/core'
import type { StoreRevisionsRequest } from '@sectional/core'
import { namedBlobs, provideBlobs } from './blob-transfer.ts'
import { writeCall } from './coordinator-scope.ts'
import type { CoordinatorScope } from './coordinator-scope.ts'
import type { RequestContext } from './coordinator.ts'
import type { Peer, ShardPlace } from './replica-access.ts'
import { asReplicaError } from './replica-failures.ts'
import { WriteTally } from './write-tally.ts'

export interface Distribution {
  /** `accepted`: durable somewhere, but on fewer than w replicas after all have replied. */
  readonly verdict: 'met' | 'accepted' | 'failed'
  readonly errors: readonly ReplicaError[]
}

/**
 * Sends decided revisions to every replica but the one that has them already. Resolves as soon as w copies are
 * durable; the rest goes on as background work. Filling replicas receive and do not count. A replica that the shard got
 * meanwhile receives them too, and w counts by the old map and the new.
 *
 * @param decider the replica that made the revisions durable when it decided; null: none has them yet
 * @param w as the client gave it
 */
export function distributeRevisions(
  scope: CoordinatorScope, place: ShardPlace, request: StoreRevisionsRequest, decider: Peer | null, w: number | undefined, context: RequestContext,
): Promise<Distribution> {
  return new Promise(resolve => {
    const errors: ReplicaError[] = []
    const tally = new WriteTally(scope.access, place, w)
    const asked = new Set<string>()
    if (decider !== null) {
      asked.add(decider.node)
      tally.durable(decider.node)
    }
    let settled = false
    const send = (to: ShardPlace): void => {
      for (const peer of scope.access.peers(to)) {
        if (asked.has(peer.node)) continue
        asked.add(peer.node)
        scope.background.track(storeOn(scope, place, peer, request, context).then(error => {
          if (error !== null) errors.push(error)
          tally[error === null ? 'durable' : 'failed'](peer.node)
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
      scope.metrics.write(verdict)
      resolve({ verdict, errors })
    }
    send(place)
    settle()
  })
}

/** Null when the replica has the revisions on disk. */
async function storeOn(scope: CoordinatorScope, place: ShardPlace, peer: Peer, request: StoreRevisionsRequest, context: RequestContext): Promise<ReplicaError | null> {
  const bytes = requestBytes(request)
  try {
    if (!scope.access.isReachable(peer.node)) throw new ReplicaError('unreachable', `no link to ${peer.node}`)
    if (!scope.stores.enter(peer.node, bytes)) throw new ReplicaError('overloaded', `too many writes under way to ${peer.node}`)
    try {
      await storeWithBlobs(scope, place, peer, request, context)
    } finally {
      scope.stores.leave(peer.node, bytes)
    }
    scope.decisionHealth.answered(peer.node)
    return null
  } catch (error) {
    const failure = asReplicaError(error)
    if (failure.code === 'timeout') scope.decisionHealth.silent(peer.node)
    scope.reportMissed(place.id, peer.node)
    return failure
  }
}

/** A replica that was away while content was written gets it from the others first. */
async function storeWithBlobs(scope: CoordinatorScope, place: ShardPlace, peer: Peer, request: StoreRevisionsRequest, context: RequestContext): Promise<void> {
  const call = writeCall(scope.options.storeTimeoutMs, context)
  try {
    await peer.replica.storeRevisions(request, call)
  } catch (error) {
    if (asReplicaError(error).code !== 'missing_blob') throw error
    await provideBlobs(scope, peer, namedBlobs(request.revisions), place, context.requestId)
    await peer.replica.storeRevisions(request, call)
  }
}

function requestBytes(request: StoreRevisionsRequest): number {
  let bytes = 0
  for (const revision of request.revisions) bytes += revision.body.length
  for (const local of request.locals ?? []) bytes += local.body?.length ?? 0
  return bytes
}
