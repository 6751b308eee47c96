import { mapBounded } from '@sectional/core'
import { feedsOverloaded } from '../replicas/replica-failures.ts'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import { ShardsFeed } from '../feeds/changes-feed.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import type { ChangesFeed, ChangesOptions, OperationContext } from '../contracts/coordinator.ts'

/**
 * Opens a feed over one replica of each shard. They are found before this resolves, so that what cannot be read
 * fails before anything is told to the client; rows are read when they are asked for.
 *
 * @throws ApiError 503 when feeds of this node wait on as many replicas as they may
 */
export async function openChanges(scope: CoordinatorScope, db: DatabaseRecord, options: ChangesOptions, context: OperationContext): Promise<ChangesFeed> {
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
