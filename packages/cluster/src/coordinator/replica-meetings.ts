import type { CallContext } from '@sectional/core'
import type { CoordinatorScope } from './coordinator-scope.ts'
import type { ShardPlace } from './replica-access.ts'
import { asReplicaError } from './replica-failures.ts'

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
