import { indexId } from '@sectional/core'
import type { IndexDefinition } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { OperationContext } from '../contracts/coordinator.ts'
import { onEveryReplica } from '../shard-calls/every-replica.ts'
import type { ViewScope } from './view-scope.ts'

/**
 * Removes the indexes of a database from every replica that is up, except those of the given definitions. A replica
 * that is down keeps its indexes until the next call. A removed index is built again when a query needs it.
 *
 * @throws ApiError when no replica answers
 */
export async function cleanViews(
  scope: ViewScope, db: DatabaseRecord, used: readonly IndexDefinition[], { requestId }: OperationContext,
): Promise<void> {
  const except = [...new Set(used.map(indexId))]
  const call = { timeoutMs: scope.options.requestTimeoutMs, requestId }
  await onEveryReplica(scope, db, ({ id }, { node }) => scope.indexes.indexes(node, id).dropIndexes({ except }, call))
}
