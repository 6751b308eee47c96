import { encodeSinceToken, mapBounded } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import { ShardPosition } from './changes-position.ts'
import { readCall } from './coordinator-scope.ts'
import type { CoordinatorScope } from './coordinator-scope.ts'
import type { DatabaseInfo, RequestContext } from './coordinator.ts'
import { collectReplies } from './reply-collection.ts'

/** Sums over one replica of each shard. */
export async function databaseInfo(scope: CoordinatorScope, db: DatabaseRecord, context: RequestContext): Promise<DatabaseInfo> {
  const call = readCall(scope, context)
  const infos = await mapBounded(scope.access.places(db), scope.options.requestCallsMax, async place => {
    const { replies } = await collectReplies(scope, place, 1, peer => peer.replica.replicaInfo(call))
    const { peer, value } = replies[0]!
    scope.histories.learn(value.history, peer.node)
    return { ...value, range: place.id.range, node: peer.node }
  })
  const sum = (of: (info: (typeof infos)[number]) => number): number => infos.reduce((total, info) => total + of(info), 0)
  const places = infos.flatMap(info => {
    const position = new ShardPosition(info.range, [], scope.histories)
    position.reach(info, info.sequence)
    return position.parts()
  })
  return {
    updateSequence: encodeSinceToken(places),
    purgeSequence: encodeSinceToken(infos.map(({ range, node, history, purgeSequence }) => ({ range, node, history, sequence: purgeSequence }))),
    documentCount: sum(info => info.documentCount),
    compactRunning: infos.some(info => info.compacting),
    deletedCount: sum(info => info.deletedCount),
    sizes: { file: sum(info => info.sizes.file), active: sum(info => info.sizes.active), external: sum(info => info.sizes.external) },
  }
}
