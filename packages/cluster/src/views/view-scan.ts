import { scanOrder, scanTogether } from '@sectional/core'
import type { IndexRow, ScannedPlace } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { OperationContext } from '../contracts/coordinator.ts'
import { mergeLists, mergeRows } from '../shard-calls/row-merge.ts'
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
  const { descending, skip, limit } = query
  const places = viewPlaces(scope, db, query)
  const shards = await openShards<ScannedPlace, IndexRow>(scope, places, query, {
    call: (indexes, read, call) => indexes.scanIndex(read, call),
    immediate: scanTogether,
  }, context)
  const order = { compare: scanOrder(descending), skip: places.length === 1 ? 0 : skip, limit }
  const { index, answers, inMemory, close } = shards
  const rows = inMemory === undefined
    ? scope.pages.hold(pages => mergeRows(answers.map(answer => answer.pages()), { ...order, bytesOf, ...pages }))
    : onePage(mergeLists(inMemory, order))
  return { ...viewSummary(index, answers, skip, scope.indexFingerprints), rows, close }
}

async function* onePage<Row>(rows: readonly Row[]): AsyncGenerator<readonly Row[]> {
  if (rows.length > 0) yield rows
}

function bytesOf({ key, id, value }: IndexRow): number {
  return key.length + id.length + value.length
}
