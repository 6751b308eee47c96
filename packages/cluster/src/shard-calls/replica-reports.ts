import { newestPosition } from '@sectional/core'
import type { CallContext } from '@sectional/core'
import type { CoordinatorScope } from './coordinator-scope.ts'
import type { ShardPlace } from '../replicas/replica-access.ts'
import { asReplicaError } from '../replicas/replica-failures.ts'
import type { Standing } from '../replicas/replica-standings.ts'

/**
 * Asks the replicas of a shard for their histories and checkpoints, unless they were asked a moment ago. A position in
 * the changes feed can be given in the form that is equal on all nodes only when these are known. Never rejects;
 * replicas that do not answer are left out.
 */
export async function requestReports(
  scope: CoordinatorScope, place: ShardPlace, call: Pick<CallContext, 'requestId'>,
): Promise<void> {
  const unknown = scope.access.readers(place).filter(({ node, local }) =>
    (local || !scope.readHealth.isSuspect(node)) && !scope.standings.hasReported(node, place.id))
  await Promise.all(unknown.map(({ node, replica }) => scope.standings.reporting(node, place.id, async () => {
    try {
      const reached = await newestPosition(replica, { ...call, timeoutMs: scope.options.stateTimeoutMs })
      scope.histories.learn(reached.history, node)
      scope.standings.reported(node, place.id, reached)
    } catch (error) {
      if (asReplicaError(error).code === 'timeout') scope.readHealth.silent(node)
    }
  })))
}

/**
 * Returns the standing with the list of all replicas of its shard, if each of them has every change of the others.
 * Replicas that have not reported this yet are asked, but only if this replica has every change of the others, which is
 * rare while documents are written. Never rejects. Returns the standing unchanged when a replica lacks a change or does
 * not answer.
 */
export async function completeStanding(
  scope: CoordinatorScope, standing: Standing, place: ShardPlace, call: Pick<CallContext, 'requestId'>,
): Promise<Standing> {
  if (standing.source.all !== undefined) return standing
  await requestReports(scope, place, call)
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
