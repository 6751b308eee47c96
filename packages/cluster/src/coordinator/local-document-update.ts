import { ApiError } from '@sectional/core'
import type { ReplicaError, UpdateLocalDocumentRequest } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import { readCall, writeCall } from '../shard-calls/coordinator-scope.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import type { LocalWriteOutcome, OperationContext, WriteOptions } from '../contracts/coordinator.ts'
import { localPlace, newestLocal, storeLocal } from '../documents/local-documents.ts'
import type { Peer, ShardPlace } from '../replicas/replica-access.ts'
import { asReplicaError, shardFailure } from '../replicas/replica-failures.ts'
import { collectReplies } from '../shard-calls/reply-collection.ts'
import { distributeRevisions } from '../documents/revisions-distribution.ts'

/**
 * Writes a local document. The first reachable replica stamps the new version, and the other replicas receive it. The
 * last writer wins.
 *
 * @throws ApiError when no replica answers, and when the document is missing only after a call that may have deleted it
 */
export async function updateLocalDocument(
  scope: CoordinatorScope, db: DatabaseRecord, write: UpdateLocalDocumentRequest, options: WriteOptions,
  context: OperationContext,
): Promise<LocalWriteOutcome> {
  const place = localPlace(scope, db, write.id)
  const errors: ReplicaError[] = []
  // True after a call failed that may have been carried out.
  let uncertain = false
  let missing = false
  for (const peer of scope.access.deciders(place)) {
    let sent = false
    try {
      // The replica may hold an old version, also when it usually stamps: its disk may have been full. The new stamp
      // must be greater than that of the newest version, whatever the clocks of the nodes show.
      await refresh(scope, db, place, peer, write.id, context)
      sent = true
      const reply = await peer.replica.updateLocalDocument(
        write, writeCall(scope.options.decisionTimeoutMs, context),
      )
      scope.decisionHealth.answered(peer.node)
      missing = reply.kind === 'missing'
      if (missing && uncertain) break
      if (reply.kind === 'missing') return reply
      const { verdict } = await distributeRevisions(
        scope, place, { revisions: [], locals: [reply.document], revsLimit: db.revsLimit }, peer, options.w, context,
      )
      return { kind: 'written', revision: reply.document.revision, accepted: verdict !== 'met' }
    } catch (error) {
      // When no replica can be read, the cause is the error of one of them.
      const failure = asReplicaError(error instanceof ApiError ? error.cause ?? error : error)
      errors.push(failure)
      uncertain ||= sent && !failure.nothingDone
      if (failure.code === 'timeout') scope.decisionHealth.silent(peer.node)
    }
  }
  throw missing ? uncertainOutcome(errors[0]!) : shardFailure(errors)
}

function uncertainOutcome(cause: ReplicaError): ApiError {
  return new ApiError(
    'service_unavailable', 'A replica failed after it may have written the local document. Try again.',
    { headers: { 'Retry-After': '1' }, cause },
  )
}

/** Brings the replica up to date. */
async function refresh(
  scope: CoordinatorScope, db: DatabaseRecord, place: ShardPlace, peer: Peer, id: string, context: OperationContext,
): Promise<void> {
  if (place.activeCount === 1) return
  const call = readCall(scope, context)
  const open = async (from: Peer) => (await from.replica.openLocalDocuments([id], call))[0] ?? null
  const { replies } = await collectReplies(scope, place, undefined, open)
  const newest = newestLocal(replies.map(reply => reply.value))
  const own = await open(peer)
  if (newest === null || newest.stamp <= (own?.stamp ?? -Infinity)) return
  await storeLocal(scope, db, peer, newest, context)
}
