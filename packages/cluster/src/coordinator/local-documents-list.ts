import type { LocalDocument } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import type { ListDocumentsOptions, RequestContext } from '../contracts/coordinator.ts'
import { mergeRows } from '../shard-calls/row-merge.ts'
import { scanShard } from '../shard-calls/shard-scan.ts'

/** Local documents in byte order of their ids (without `_local/`), merged from one replica of each shard. */
export async function listLocalDocuments(
  scope: CoordinatorScope, db: DatabaseRecord, options: ListDocumentsOptions, context: RequestContext,
): Promise<{ readonly rows: AsyncIterable<readonly LocalDocument[]> }> {
  const { start, end, descending, skip, limit } = options
  const bounds = { descending, ...(start && { start }), ...(end && { end }), ...(limit !== null && { limit: skip + limit }) }
  const sources = limit === 0 ? [] : scope.access.places(db).map(place =>
    scanShard(scope, place, bounds, (replica, rest, call) => replica.scanLocalDocuments(rest, call), context))
  return { rows: mergeRows(sources, { descending, skip, limit, pageRows: scope.options.listPageRows, pageBytes: scope.options.listPageBytes }) }
}
