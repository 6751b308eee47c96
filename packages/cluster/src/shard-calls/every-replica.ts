import { mapBounded } from '@sectional/core'
import type { ReplicaError } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { Peer, ShardPlace } from '../replicas/replica-access.ts'
import { asReplicaError, shardFailure } from '../replicas/replica-failures.ts'
import type { CoordinatorScope } from './coordinator-scope.ts'

/**
 * Returns the answers of all replicas of a database that are up. Replicas that fail are left out.
 *
 * @throws ApiError when no replica answers
 */
export async function onEveryReplica<T>(
  { access, options }: Pick<CoordinatorScope, 'access' | 'options'>, db: DatabaseRecord,
  act: (place: ShardPlace, peer: Peer) => Promise<T>,
): Promise<readonly T[]> {
  const targets = access.places(db).flatMap(place =>
    access.peers(place).filter(peer => access.isReachable(peer.node)).map(peer => ({ place, peer })))
  const errors: ReplicaError[] = []
  const answers: T[] = []
  await mapBounded(targets, options.requestCallsMax, async ({ place, peer }) => {
    try {
      answers.push(await act(place, peer))
    } catch (error) {
      errors.push(asReplicaError(error))
    }
  })
  if (answers.length === 0) throw shardFailure(errors)
  return answers
}
