import { encodeSinceToken, mapBounded } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import { ShardPosition } from '../replicas/changes-position.ts'
import { readCall } from '../shard-calls/coordinator-scope.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import type { DatabaseInfo, OperationContext } from '../contracts/coordinator.ts'
import { completeStanding, requestReports } from '../shard-calls/replica-reports.ts'
import { collectReplies } from '../shard-calls/reply-collection.ts'

/** Returns the sums over one replica of each shard. */
export async function databaseInfo(
  scope: CoordinatorScope, db: DatabaseRecord, context: OperationContext,
): Promise<DatabaseInfo> {
  const call = readCall(scope, context)
  const infos = await mapBounded(scope.access.places(db), scope.options.requestCallsMax, async place => {
    const [{ replies }] = await Promise.all([
      collectReplies(scope, place, 1, peer => peer.replica.upkeep.replicaInfo(call)),
      requestReports(scope, place, { requestId: context.requestId }),
    ])
    const { peer, value } = replies[0]!
    scope.histories.learn(value.history, peer.node)
    const position = new ShardPosition(place.id.range, [], scope.histories)
    const standing = await completeStanding(scope, scope.standings.keep(peer, place, value), place, {
      requestId: context.requestId,
    })
    position.reach(standing.source, value.sequence)
    return { ...value, range: place.id.range, node: peer.node, parts: position.parts() }
  })
  const sum = (of: (info: (typeof infos)[number]) => number): number =>
    infos.reduce((total, info) => total + of(info), 0)
  return {
    updateSequence: encodeSinceToken(infos.flatMap(info => info.parts)),
    purgeSequence: encodeSinceToken(
      infos.map(({ range, node, history, purgeSequence }) => ({ range, node, history, sequence: purgeSequence })),
    ),
    documentCount: sum(info => info.documentCount),
    compactRunning: infos.some(info => info.compacting) || await scope.compactions.isRunning(scope, db, context),
    deletedCount: sum(info => info.deletedCount),
    sizes: { file: sum(info =>
      info.sizes.file), active: sum(info => info.sizes.active), external: sum(info => info.sizes.external) },
  }
}
