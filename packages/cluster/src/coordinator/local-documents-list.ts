import type { LocalDocument } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import type { ListDocumentsOptions, OperationContext } from '../contracts/coordinator.ts'
import { rowsById } from '../shard-calls/rows-by-id.ts'

/** Lists local documents in the byte order of their ids (without `_local/`), merged from one replica of each shard. */
export async function listLocalDocuments(
  scope: CoordinatorScope, db: DatabaseRecord, options: ListDocumentsOptions, context: OperationContext,
): Promise<{ readonly rows: AsyncIterable<readonly LocalDocument[]> }> {
  const { end, descending } = options
  const request = { descending, ...(end && { end }) }
  const rows = rowsById<LocalDocument>(scope, scope.access.places(db), options,
    ({ replica }, rest, call) => replica.scanLocalDocuments({ ...request, ...rest }, call), context)
  return { rows }
}
