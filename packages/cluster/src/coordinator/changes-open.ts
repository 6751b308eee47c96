import { mapBounded } from '@sectional/core'
import { feedsOverloaded } from '../replicas/replica-failures.ts'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import { ShardsFeed } from '../feeds/changes-feed.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import type { ChangesFeed, ChangesOptions, OperationContext } from '../contracts/coordinator.ts'

/**
 * Opens a feed over one replica of each shard. The replicas are chosen before this resolves, so that a shard that
 * cannot be read causes an error before the client receives anything. Rows are read on demand.
 *
 * @throws ApiError 503 when the feeds of this node already wait on the largest allowed number of replicas
 */
export async function openChanges(
  scope: CoordinatorScope, db: DatabaseRecord, options: ChangesOptions, context: OperationContext,
): Promise<ChangesFeed> {
  if (options.follow && scope.watches.full) throw feedsOverloaded()
  const feed = new ShardsFeed(scope, scope.access.places(db), options, context)
  try {
    await mapBounded(feed.shards, scope.options.requestCallsMax, shard => feed.attach(shard))
  } catch (error) {
    await feed.close()
    throw error
  }
  return feed
}
