import type { PartitionInfo, TimeSpan } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import { readCall, writeCall } from '../shard-calls/coordinator-scope.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import type { ReplicaTimes, OperationContext } from '../contracts/coordinator.ts'
import { onEveryReplica } from '../shard-calls/every-replica.ts'
import { askOne } from '../shard-calls/reply-collection.ts'

/** Returns the counts of one replica of the partition's shard. */
export function partitionInfo(
  scope: CoordinatorScope, db: DatabaseRecord, partition: string, context: OperationContext,
): Promise<PartitionInfo> {
  const call = readCall(scope, context)
  const place = scope.access.placeOf(db, `${partition}:`)
  return askOne(scope, place, peer => peer.replica.upkeep.partitionInfo(partition, call))
}

/**
 * Starts a compaction on every replica that is up. Other replicas start compactions themselves when these are
 * worthwhile.
 * @throws ApiError when no replica of the database is up
 */
export async function compactDatabase(
  scope: CoordinatorScope, db: DatabaseRecord, context: OperationContext,
): Promise<void> {
  await onEveryReplica(
    scope, db, (_place, peer) => peer.replica.upkeep.compactShard(writeCall(scope.options.requestTimeoutMs, context)),
  )
  scope.compactions.requested(db)
}

/** Returns for each replica the time spans of its changes, with the number of changes in each. */
export function timeSpans(
  scope: CoordinatorScope, db: DatabaseRecord, clear: boolean, context: OperationContext,
): Promise<readonly ReplicaTimes[]> {
  const call = writeCall(scope.options.requestTimeoutMs, context)
  return onEveryReplica(scope, db, async ({ id: { range } }, peer) => {
    const spans = await peer.replica.timeSpans({ clear }, call)
    const { sequence } = await peer.replica.upkeep.replicaInfo(call)
    return { range, node: peer.node, spans: counted(spans, sequence) }
  })
}

function counted(spans: readonly TimeSpan[], sequence: number): ReplicaTimes['spans'] {
  return spans.map((span, index) => ({
    begin: span.begin, count: (spans[index + 1]?.sequence ?? sequence + 1) - span.sequence,
  }))
}
