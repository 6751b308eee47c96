import { indexFailuresMax, indexId, mapBounded, newestPosition, ReplicaError } from '@sectional/core'
import type { CallContext, IndexDefinition, IndexInfo, ShardId } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { OperationContext } from '../contracts/coordinator.ts'
import type { ViewInfo } from '../contracts/view-query.ts'
import type { Peer, ShardPlace } from '../replicas/replica-access.ts'
import { asReplicaError, shardFailure } from '../replicas/replica-failures.ts'
import type { ViewScope } from './view-scope.ts'

/** The indexes of one replica. */
interface ReplicaIndexes {
  readonly sequence: number
  /** The sequence up to which all indexes have read the changes. */
  readonly readSequence: number
  /** Those that the replica has. */
  readonly indexes: readonly IndexInfo[]
}

/**
 * Returns information about the indexes of some definitions. It builds no index.
 *
 * @throws ApiError when no replica of a shard answers
 */
export async function viewInfo(
  scope: ViewScope, db: DatabaseRecord, definitions: readonly IndexDefinition[],
  { signal, requestId }: OperationContext,
): Promise<ViewInfo> {
  const ids = [...new Set(definitions.map(indexId))]
  const call: CallContext = { timeoutMs: scope.options.readTimeoutMs, signal, requestId }
  const shards = await mapBounded(scope.access.places(db), scope.options.requestCallsMax,
    place => shardIndexes(scope, place, ids, call))
  const preferred = shards.flatMap(([first]) => first!.indexes)
  const pending = shards.map(replicas => replicas.map(pendingOf))
  return {
    building: preferred.some(({ building }) => building),
    waiting: sum(preferred.map(({ waiting }) => waiting)),
    readSequence: sum(shards.map(([first]) => first!.readSequence)),
    pending: {
      minimum: sum(pending.map(numbers => Math.min(...numbers))), preferred: sum(pending.map(([first]) => first!)),
      total: sum(pending.flat()),
    },
    sizes: {
      file: sum(preferred.map(({ sizes }) => sizes.file)), active: sum(preferred.map(({ sizes }) => sizes.active)),
      external: sum(preferred.map(({ sizes }) => sizes.external)),
    },
    failedCount: sum(preferred.map(({ failedCount }) => failedCount)),
    failures: preferred.flatMap(({ failures }) => failures).slice(0, indexFailuresMax),
  }
}

/** Returns the indexes of each replica that answers, at least one, in the order in which queries ask them. */
async function shardIndexes(
  scope: ViewScope, place: ShardPlace, ids: readonly string[], call: CallContext,
): Promise<readonly ReplicaIndexes[]> {
  const outcomes = await Promise.allSettled(
    scope.access.readers(place).map(peer => replicaIndexes(scope, place.id, peer, ids, call)))
  const answers = outcomes.flatMap(outcome => outcome.status === 'fulfilled' ? [outcome.value] : [])
  if (answers.length > 0) return answers
  throw shardFailure(outcomes.flatMap(outcome => outcome.status === 'rejected' ? [asReplicaError(outcome.reason)] : []))
}

async function replicaIndexes(
  scope: ViewScope, shard: ShardId, { node, replica }: Peer, ids: readonly string[], call: CallContext,
): Promise<ReplicaIndexes> {
  if (ids.length === 0) return { sequence: 0, readSequence: 0, indexes: [] }
  const { sequence } = await newestPosition(replica, call)
  const replicaOfIndexes = scope.indexes.indexes(node, shard)
  const indexes = await mapBounded(ids, scope.options.requestCallsMax, async id => {
    try {
      return await replicaOfIndexes.indexInfo(id, call)
    } catch (error) {
      if (error instanceof ReplicaError && error.code === 'not_hosted') return undefined
      throw error
    }
  })
  const readSequence = Math.min(sequence, ...indexes.map(index => index?.readSequence ?? 0))
  return { sequence, readSequence, indexes: indexes.flatMap(index => index ?? []) }
}

function pendingOf({ sequence, readSequence }: ReplicaIndexes): number {
  return sequence - readSequence
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
