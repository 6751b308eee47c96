import { mapBounded } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import { readCall } from '../shard-calls/coordinator-scope.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import type { OpenedDocument, OperationContext } from '../contracts/coordinator.ts'
import { askOne } from '../shard-calls/reply-collection.ts'

/** Opens many documents, each from one replica. Returns them in the order of `ids`. */
export function openDocuments(
  scope: CoordinatorScope, db: DatabaseRecord, ids: readonly string[], { body }: { readonly body: boolean },
  context: OperationContext,
): Promise<readonly (OpenedDocument | null)[]> {
  const call = readCall(scope, context)
  return mapBounded(ids, scope.options.requestCallsMax, id =>
    askOne(scope, scope.access.placeOf(db, id), peer => peer.replica.openDocument({ id, body, tree: false }, call)))
}
