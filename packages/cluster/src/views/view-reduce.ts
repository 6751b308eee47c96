import { builtInReduce } from '@sectional/core'
import type { GroupPlace, ReducedGroup } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { OperationContext } from '../contracts/coordinator.ts'
import { type GroupSources, mergeGroups } from './group-merge.ts'
import type { ReduceQuery, ViewAnswer, ViewGroup } from '../contracts/view-query.ts'
import type { ViewScope } from './view-scope.ts'
import { openShards, viewPlaces } from './view-shards.ts'
import { viewSummary } from './view-summary.ts'

/**
 * Returns the reduced groups of a view in the order of its index. One replica of each shard reduces the rows of the
 * shard; the values of a group that several shards have are reduced again. Without rows there is no group.
 *
 * @throws IndexBehindError when indexes were not built within `timeoutMs`; ApiError when a shard has no replica left
 */
export async function reduceView(
  scope: ViewScope, db: DatabaseRecord, query: ReduceQuery, context: OperationContext,
): Promise<ViewAnswer<ViewGroup>> {
  const { definition, descending, skip, limit, groupLevel, reduceAgain } = query
  const places = viewPlaces(scope, db, query)
  const shards = await openShards<GroupPlace, ReducedGroup>(scope, places, query, {
    call: (indexes, read, call) => indexes.reduceIndex({ ...read, groupLevel }, call),
    immediate: (indexes, read) => {
      const request = { ...read, groupLevel }
      return indexes.map(each => each?.reduceIndex(request))
    },
  }, context)
  const { index, answers, inMemory, close } = shards
  const merge = {
    descending, skip: places.length === 1 ? 0 : skip, limit,
    reduceAgain: (groups: readonly (readonly Uint8Array[])[]) => reduceAgain(groups, shards.signal()),
  }
  const merged = (sources: GroupSources): AsyncGenerator<readonly ViewGroup[]> =>
    scope.pages.hold(pages => mergeGroups(sources, { ...merge, ...pages }))
  const sources = inMemory ?? answers.map(answer => answer.pages())
  // A custom reduce function may fail once, and not the next time, so that its results are not kept.
  const isKept = inMemory !== undefined && builtInReduce(definition.reduce!) !== undefined
  const rows = isKept
    ? scope.mergedGroups.open(inMemory, merge, () => merged(inMemory))
    : merged(sources)
  return { ...viewSummary(index, answers, 0, scope.indexFingerprints), rows, close }
}
