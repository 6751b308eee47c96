import type { LocalDocument } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import { readCall } from '../shard-calls/coordinator-scope.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import type { ReadOptions, OperationContext } from '../contracts/coordinator.ts'
import { compareLocals, localPlace, newestLocal, storeLocal } from '../documents/local-documents.ts'
import { asReplicaError } from '../replicas/replica-failures.ts'
import { collectReplies } from '../shard-calls/reply-collection.ts'
import type { Reply } from '../shard-calls/reply-collection.ts'

/**
 * Returns the newest version of a local document on r replicas. Replicas with an older version are repaired in the
 * background.
 */
export async function openLocalDocument(
  scope: CoordinatorScope, db: DatabaseRecord, id: string, options: ReadOptions, context: OperationContext,
): Promise<LocalDocument | null> {
  const place = localPlace(scope, db, id)
  const call = readCall(scope, context)
  const { replies } = await collectReplies(
    scope, place, options.r, async peer => (await peer.replica.openLocalDocuments([id], call))[0] ?? null,
  )
  const newest = newestLocal(replies.map(reply => reply.value))
  if (newest === null) return null
  repairLaggards(scope, db, replies, newest, context)
  return newest.body === null ? null : newest
}

function repairLaggards(
  scope: CoordinatorScope, db: DatabaseRecord, replies: readonly Reply<LocalDocument | null>[], newest: LocalDocument,
  context: OperationContext,
): void {
  for (const { peer, value } of replies) {
    if (value !== null && compareLocals(value, newest) === 0) continue
    if (!scope.stores.enter(peer.node, newest.body?.length ?? 0)) return scope.metrics.repair('dropped')
    scope.background.track(storeLocal(scope, db, peer, newest, context).then(() =>
      scope.metrics.repair('repaired'), (error: unknown) => {
      scope.metrics.repair('failed')
      scope.runtime.log.warn(
        { db: db.name, peer: peer.node, code: asReplicaError(error).code },
        'repair of a local document failed; anti-entropy will try again',
      )
    }).finally(() => scope.stores.leave(peer.node, newest.body?.length ?? 0)))
  }
}
