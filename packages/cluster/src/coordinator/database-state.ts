import { createHash } from 'node:crypto'
import { encodeSinceToken, mapBounded, newestPosition } from '@sectional/core'
import type { CallContext } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import { ShardPosition } from '../replicas/changes-position.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import type { DatabaseState, OperationContext } from '../contracts/coordinator.ts'
import type { Peer, ShardPlace } from '../replicas/replica-access.ts'
import { asReplicaError, shardFailure } from '../replicas/replica-failures.ts'
import { completeStanding } from '../shard-calls/replica-reports.ts'

interface Standing { readonly node: string; readonly history: string; readonly sequence: number }

/**
 * Returns the checkpoints of all reachable replicas. Although replicas number their changes differently, every node
 * returns the same result while nothing is written.
 */
export async function databaseState(
  scope: CoordinatorScope, db: DatabaseRecord, context: OperationContext,
): Promise<DatabaseState> {
  const call: CallContext = {
    timeoutMs: scope.options.stateTimeoutMs, signal: context.signal, requestId: context.requestId,
  }
  const places = await mapBounded(
    scope.access.places(db), scope.options.requestCallsMax, place => shardState(scope, place, call),
  )
  const hash = createHash('md5')
  for (const { standings } of places) {
    for (const { node, history, sequence } of standings) hash.update(`${node} ${history} ${sequence}\n`)
  }
  return {
    updateSequence: () => updateSequence(scope, places, { requestId: context.requestId }),
    fingerprint: hash.digest('hex'),
  }
}

/** Returns the update sequence, from the first replica of each shard that answered. */
async function updateSequence(
  scope: CoordinatorScope, places: readonly ShardState[], context: Pick<CallContext, 'requestId'>,
): Promise<string> {
  const parts = await mapBounded(places, scope.options.requestCallsMax, async ({ place, first }) => {
    const position = new ShardPosition(place.id.range, [], scope.histories)
    try {
      const { standing, sequence } = await scope.standings.now(first, place)
      position.reach((await completeStanding(scope, standing, place, context)).source, sequence)
    } catch (error) {
      throw shardFailure([asReplicaError(error)])
    }
    return position.parts()
  })
  return encodeSinceToken(parts.flat())
}

interface ShardState {
  readonly place: ShardPlace
  /** The first replica that answered. */
  readonly first: Peer
  /** Sorted by node. */
  readonly standings: readonly Standing[]
}

async function shardState(scope: CoordinatorScope, place: ShardPlace, call: CallContext): Promise<ShardState> {
  const readers = trusted(scope, scope.access.readers(place))
  const asked = await Promise.allSettled(
    readers.map(async peer => ({ peer, reached: await newestPosition(peer.replica, call) })),
  )
  for (const [index, outcome] of asked.entries()) {
    if (outcome.status === 'rejected' && asReplicaError(outcome.reason).code === 'timeout') {
      scope.readHealth.silent(readers[index]!.node)
    }
  }
  const answers = asked.flatMap(outcome => outcome.status === 'fulfilled' ? [outcome.value] : [])
  const first = answers[0]
  if (first === undefined) {
    throw shardFailure(asked.flatMap(outcome => outcome.status === 'rejected' ? [asReplicaError(outcome.reason)] : []))
  }
  const standings = answers.map(({ peer, reached: { history, sequence } }) => {
    scope.histories.learn(history, peer.node)
    scope.standings.reported(peer.node, place.id, { history, sequence })
    return { node: peer.node, history, sequence }
  })
  standings.sort((a, b) => a.node < b.node ? -1 : 1)
  return { place, first: first.peer, standings }
}

/** Leaves out silent nodes, for which the client would wait in vain, unless there are no others. */
function trusted(scope: CoordinatorScope, readers: readonly Peer[]): readonly Peer[] {
  const answering = readers.filter(peer => peer.local || !scope.readHealth.isSuspect(peer.node))
  return answering.length > 0 ? answering : readers
}
