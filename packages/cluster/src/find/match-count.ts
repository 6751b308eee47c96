import { builtInReduce, decodeViewGroup } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { CountQuery, FindQuerySource, MatchCount } from '../contracts/find-query.ts'
import type { OperationContext } from '../contracts/coordinator.ts'
import { reduceView } from '../views/view-reduce.ts'
import type { FindScope } from './find-scope.ts'
import { examineShards } from './find-shards.ts'
import { FindTally } from './find-tally.ts'

/**
 * Counts the documents that match a selector. When the ranges of an index contain all matches and nothing else, the
 * counts of the ranges suffice, which an index has at hand. Otherwise the replicas count, and send no document.
 *
 * @throws IndexBehindError when an index was not built within `timeoutMs`; ApiError when a shard has no replica left
 */
export async function countMatches(
  scope: FindScope, db: DatabaseRecord, query: CountQuery, context: OperationContext,
): Promise<MatchCount> {
  const { source, isExact } = query
  const tally = new FindTally()
  if (isExact && source.kind === 'index') {
    const count = await countRows(scope, db, query, source, context)
    return { count, statistics: tally.statistics() }
  }
  const find = { ...query, descending: false, countOnly: true }
  await examineShards(scope, db, find, progress => tally.add(progress), context)
  return { count: tally.matches, statistics: tally.statistics() }
}

async function countRows(
  scope: FindScope, db: DatabaseRecord, { update, timeoutMs, partition }: CountQuery,
  { definition, ranges }: FindQuerySource & { readonly kind: 'index' }, context: OperationContext,
): Promise<number> {
  const answer = await reduceView(scope, db, {
    definition, ranges, descending: false, skip: 0, limit: null, update, timeoutMs, groupLevel: 0,
    ...(partition !== undefined && { partition }),
    reduceAgain: async groups => groups.map(states => Buffer.from(countOf(states))),
  }, context)
  let count = 0
  try {
    for await (const page of answer.rows) for (const { value } of page) count += Number(Buffer.from(value).toString())
  } finally {
    await answer.close()
  }
  return count
}

/** Returns the number of rows as decimal text. @param groups as the replicas of an index with `_count` send them */
function countOf(groups: readonly Uint8Array[]): string {
  const reduction = builtInReduce('_count')!.start()
  for (const group of groups) reduction.addState(decodeViewGroup(group).state)
  return reduction.result()
}
