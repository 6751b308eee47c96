import type { AttachmentRecord, BlobSpan, ReplicaError } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import { readCall } from '../shard-calls/coordinator-scope.ts'
import type { OperationContext } from '../contracts/coordinator.ts'
import { asReplicaError, shardFailure } from '../replicas/replica-failures.ts'

/**
 * Reads the stored bytes of an attachment from one replica. When that replica fails, or its content is damaged, the
 * next one continues at the same offset. Missing or damaged content is repaired in the background.
 *
 * @throws ApiError when no replica is left
 */
export async function* readBlob(
  scope: CoordinatorScope, db: DatabaseRecord, id: string, { blob, storedLength }: AttachmentRecord,
  span: BlobSpan | null, context: OperationContext,
): AsyncGenerator<Uint8Array, void, undefined> {
  const place = scope.access.placeOf(db, id)
  const call = readCall(scope, context)
  const start = span?.start ?? 0
  const end = Math.min(span?.end ?? storedLength, storedLength)
  const errors: ReplicaError[] = []
  let sent = 0
  for (const peer of scope.access.readers(place)) {
    try {
      for await (const chunk of peer.replica.blobs.readBlob({ hash: blob, span: { start: start + sent, end } }, call)) {
        sent += chunk.length
        yield chunk
      }
      return
    } catch (error) {
      const failure = asReplicaError(error)
      errors.push(failure)
      if (failure.code === 'timeout') scope.readHealth.silent(peer.node)
      if (failure.code === 'missing_blob' || failure.code === 'damaged_blob') {
        scope.blobRepairs.request(place, peer, blob)
      }
      if (context.signal.aborted) break
    }
  }
  throw shardFailure([...errors, ...scope.access.notAsked(place)])
}
