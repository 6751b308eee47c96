import type { AttachmentRecord, BlobSpan, ReplicaError } from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { CoordinatorScope } from './coordinator-scope.ts'
import { readCall } from './coordinator-scope.ts'
import type { RequestContext } from './coordinator.ts'
import { asReplicaError, shardFailure } from './replica-failures.ts'

/** Content up to this size is read whole, and so checked, before the first byte goes out. */
const checkedBytesMax = 1024 * 1024

/**
 * The stored bytes of an attachment, from one replica; when it fails, the next one goes on where it stopped.
 * Missing or damaged content is repaired in the background. Damage in large content shows when its end is
 * reached: then the read fails before its last chunk, so that no reader takes it for whole.
 *
 * @throws ApiError when no replica is left
 */
export async function* readBlob(
  scope: CoordinatorScope, db: DatabaseRecord, id: string, { blob, storedLength }: AttachmentRecord, span: BlobSpan | null, context: RequestContext,
): AsyncGenerator<Uint8Array, void, undefined> {
  const place = scope.access.placeOf(db, id)
  const call = readCall(scope, context)
  const start = span?.start ?? 0
  const end = Math.min(span?.end ?? storedLength, storedLength)
  const errors: ReplicaError[] = []
  let sent = 0
  for (const peer of scope.access.readers(place)) {
    try {
      const rest = span === null && sent === 0 ? null : { start: start + sent, end }
      const chunks = peer.replica.readBlob(blob, rest, call)
      for await (const chunk of rest === null && storedLength <= checkedBytesMax ? checked(chunks) : chunks) {
        sent += chunk.length
        yield chunk
      }
      return
    } catch (error) {
      const failure = asReplicaError(error)
      errors.push(failure)
      if (failure.code === 'timeout') scope.readHealth.silent(peer.node)
      if (failure.code === 'missing_blob' || failure.code === 'damaged_blob') scope.blobRepairs.request(place, peer, blob)
      if (context.signal.aborted || (failure.code === 'damaged_blob' && sent > 0)) break
    }
  }
  throw shardFailure([...errors, ...scope.access.notAsked(place)])
}

/** Nothing before all of it is there. */
async function* checked(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  const all: Uint8Array[] = []
  for await (const chunk of chunks) all.push(chunk)
  yield* all
}
