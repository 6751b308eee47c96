import type { CallContext } from '@sectional/core'
import type { CoordinatorScope } from './coordinator-scope.ts'
import type { ShardPlace } from '../replicas/replica-access.ts'
import { asReplicaError } from '../replicas/replica-failures.ts'
import type { Standing } from '../replicas/replica-standings.ts'

/**
 * Asks the replicas of a shard which lives they live and where they stand, unless they were asked a moment ago. Only
 * then a place can be told in the form that is the same on every node. Never rejects: who does not answer is left out.
 */
export async function meetReplicas(scope: CoordinatorScope, place: ShardPlace, call: Pick<CallContext, 'requestId'>): Promise<void> {
  const strangers = scope.access.readers(place).filter(({ node, local }) =>
    (local || !scope.readHealth.isSuspect(node)) && !scope.standings.isMet(node, place.id))
  await Promise.all(strangers.map(({ node, replica }) => scope.standings.meeting(node, place.id, async () => {
    try {
      // Who has seen no life of a replica is told at once where it stands.
      const reached = await replica.waitForChange({ history: '', sequence: 0 }, { ...call, timeoutMs: scope.options.stateTimeoutMs })
      scope.histories.learn(reached.history, node)
      scope.standings.meet(node, place.id, reached)
    } catch (error) {
      if (asReplicaError(error).code === 'timeout') scope.readHealth.silent(node)
    }
  })))
}

/**
 * The standing with the list of all replicas of its shard, where all of them have what the others have. Replicas that
 * have not told this yet are asked, but only where this one has all of the others: while documents are written it seldom
 * has. Never rejects; the standing comes back as it was where a replica lacks something or does not answer.
 */
export async function completeStanding(
  scope: CoordinatorScope, standing: Standing, place: ShardPlace, call: Pick<CallContext, 'requestId'>,
): Promise<Standing> {
  if (standing.source.all !== undefined) return standing
  await meetReplicas(scope, place, call)
  const unproven = scope.standings.unproven(standing, place)
  const isAsked = (node: string): boolean => unproven.includes(node) && !scope.readHealth.isSuspect(node)
  const peers = scope.access.readers(place).filter(({ node }) => isAsked(node))
  if (unproven.length > 0 && peers.length === unproven.length) {
    await Promise.all(peers.map(peer => scope.standings.ask(peer, place).catch((error: unknown) => {
      if (asReplicaError(error).code === 'timeout') scope.readHealth.silent(peer.node)
    })))
  }
  return scope.standings.completed(standing, place)
}
