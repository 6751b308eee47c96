import { scanOrder } from '@sectional/core'
import type { IndexRow, ScannedPlace } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { OperationContext } from '../contracts/coordinator.ts'
import { mergeRows } from '../shard-calls/row-merge.ts'
import type { ViewAnswer, ViewQuery } from '../contracts/view-query.ts'
import type { ViewScope } from './view-scope.ts'
import { openShards, viewPlaces } from './view-shards.ts'
import { viewSummary } from './view-summary.ts'

/**
 * Returns the rows of a view in the order of its index, merged from one replica of each shard. It holds at most one
 * page of each shard and reads further pages as the rows are read.
 *
 * @throws IndexBehindError when indexes were not built within `timeoutMs`; ApiError when a shard has no replica left
 */
export async function scanView(
  scope: ViewScope, db: DatabaseRecord, query: ViewQuery, context: OperationContext,
): Promise<ViewAnswer<IndexRow>> {
  const { definition, descending, skip, limit } = query
  const places = viewPlaces(scope, db, query)
  const shards = await openShards<ScannedPlace, IndexRow>(scope, places, query, {
    call: (indexes, read, call) => indexes.scanIndex(read, call),
    immediate: (indexes, read) => indexes.scanIndex(read),
  }, context)
  const { listPageRows: pageRows, listPageBytes: pageBytes } = scope.options
  const rows = mergeRows(shards.answers.map(answer => answer.pages()), {
    compare: scanOrder(descending), bytesOf, skip: places.length === 1 ? 0 : skip, limit, pageRows, pageBytes,
  })
  return { ...viewSummary(definition, shards.answers, skip), rows, close: shards.close }
}

function bytesOf({ key, id, value }: IndexRow): number {
  return key.length + id.length + value.length
}
