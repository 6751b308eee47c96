import { encodeSinceToken } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import { mapBounded } from './bounded-parallel.ts'
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
    return { ...value, range: place.id.range, node: peer.node }
  })
  const sum = (of: (info: (typeof infos)[number]) => number): number => infos.reduce((total, info) => total + of(info), 0)
  const parts = infos.map(({ range, node, history, sequence, purgeSequence }) => ({ range, node, history, sequence, purgeSequence }))
  return {
    updateSequence: encodeSinceToken(parts.map(({ range, node, history, sequence }) => ({ range, node, history, sequence }))),
    purgeSequence: encodeSinceToken(parts.map(({ range, node, history, purgeSequence }) => ({ range, node, history, sequence: purgeSequence }))),
    documentCount: sum(info => info.documentCount),
    deletedCount: sum(info => info.deletedCount),
    sizes: { file: sum(info => info.sizes.file), active: sum(info => info.sizes.active), external: sum(info => info.sizes.external) },
  }
}
