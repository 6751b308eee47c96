import { aggregateJson, Aggregation, type AggregateQuery } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { AggregatedMatches, MatchAggregation } from '../contracts/find-query.ts'
import type { OperationContext } from '../contracts/coordinator.ts'
import type { FindScope } from './find-scope.ts'
import { examineShards } from './find-shards.ts'
import { FindTally } from './find-tally.ts'
import { countMatches } from './match-count.ts'

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
  if (query.isExact && isCountOfAll(aggregate)) {
    const { count, statistics } = await countMatches(scope, db, query, context)
    const values = aggregate.aggregates.map(({ name }) => `${JSON.stringify(name)}:${count}`)
    return { rows: [`{"key":{},"value":{${values.join()}}}`], count, statistics }
  }
  const tally = new FindTally()
  const aggregation = new Aggregation(aggregate)
  const find = { ...query, descending: false, aggregate: JSON.stringify(aggregateJson(aggregate)) }
  await examineShards(scope, db, find, progress => {
    tally.add(progress)
    if (progress.groups !== undefined) aggregation.addEncoded(progress.groups)
  }, context)
  return { rows: aggregation.rows(), count: tally.matches, statistics: tally.statistics() }
}

/** Whether the number of matches is all that is asked for, which an index with exact ranges has at hand. */
function isCountOfAll({ groupBy, aggregates }: AggregateQuery): boolean {
  return groupBy.length === 0 && aggregates.every(({ path }) => path === null)
}
