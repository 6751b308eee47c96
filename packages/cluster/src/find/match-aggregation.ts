import { aggregateJson, Aggregation } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { AggregatedMatches, MatchAggregation } from '../contracts/find-query.ts'
import type { OperationContext } from '../contracts/coordinator.ts'
import type { FindScope } from './find-scope.ts'
import { examineShards } from './find-shards.ts'
import { FindTally } from './find-tally.ts'

/**
 * Aggregates the documents that match a selector. Replicas aggregate their matches, and send the state together with
 * the place up to which it goes, so that another replica can take over. The states are added here.
 *
 * @throws IndexBehindError when an index was not built within `timeoutMs`; ApiError when a shard has no replica left,
 * `bad_request` when there are too many groups or values
 */
export async function aggregateMatches(
  scope: FindScope, db: DatabaseRecord, { aggregate, ...query }: MatchAggregation, context: OperationContext,
): Promise<AggregatedMatches> {
  const tally = new FindTally()
  const aggregation = new Aggregation(aggregate)
  const find = { ...query, descending: false, aggregate: JSON.stringify(aggregateJson(aggregate)) }
  await examineShards(scope, db, find, progress => {
    tally.add(progress)
    if (progress.groups !== undefined) aggregation.addEncoded(progress.groups)
  }, context)
  return { rows: aggregation.rows(), count: tally.matches, statistics: tally.statistics() }
}
