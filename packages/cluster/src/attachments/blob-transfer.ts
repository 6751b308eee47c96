import { ReplicaError } from '@sectional/core'
import type { CallContext } from '@sectional/core'
import { copyBlob } from '../replicas/blob-copy.ts'
import type { Peer, ShardPlace } from '../replicas/replica-access.ts'
import { asReplicaError } from '../replicas/replica-failures.ts'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import { writeCall } from '../shard-calls/coordinator-scope.ts'

export interface ProvideOptions {
  /** Replace the blobs even if the target seems to have them, because they are damaged there. */
  readonly replace?: boolean
  /** True when `from` is another shard than the target's. */
  readonly isElsewhere?: boolean
}

/**
 * Ensures that one replica has blobs. They are copied from any replica of `from` that has them.
 *
 * @throws ReplicaError `missing_blob` when no replica sends one of the blobs. If a replica that does not answer may
 *   have it, that replica's error is the cause
 */
export async function provideBlobs(
  scope: CoordinatorScope, target: Peer, hashes: readonly string[], from: ShardPlace, requestId: string,
  { replace, isElsewhere }: ProvideOptions = {},
): Promise<void> {
  const call = writeCall(scope.options.storeTimeoutMs, { requestId })
  const found = await target.replica.blobs.hasBlobs(hashes, call)
  for (const [index, hash] of hashes.entries()) {
    if (found[index] && replace !== true) continue
    await provideBlob(scope, target, hash, from, isElsewhere === true, call)
  }
}

async function provideBlob(
  scope: CoordinatorScope, target: Peer, hash: string, from: ShardPlace, isElsewhere: boolean, call: CallContext,
): Promise<void> {
  const silent = scope.access.notAsked(from)
  for (const source of scope.access.peers(from)) {
    if ((source.node === target.node && !isElsewhere) || !scope.access.isReachable(source.node)) continue
    try {
      return await copyBlob(source.replica.blobs, target.replica.blobs, hash, call)
    } catch (error) {
      const failure = asReplicaError(error)
      const { code, message } = failure
      if (code !== 'missing_blob' && code !== 'damaged_blob') silent.push(failure)
      const fields = { node: source.node, blob: hash, code, error: message, requestId: call.requestId }
      scope.runtime.log.debug(fields, 'a replica could not send attachment content')
    }
  }
  throw new ReplicaError('missing_blob', `no replica that answers has the blob ${hash}`, { cause: silent[0] })
}
