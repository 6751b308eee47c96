import { ReplicaError } from '@sectional/core'
import type { AttachmentRecord, CallContext, ShardReplica } from '@sectional/core'
import type { CoordinatorScope } from '../shard-calls/coordinator-scope.ts'
import { writeCall } from '../shard-calls/coordinator-scope.ts'
import type { Peer, ShardPlace } from '../replicas/replica-access.ts'
import { asReplicaError } from '../replicas/replica-failures.ts'

type WithAttachments = { readonly attachments?: readonly AttachmentRecord[] }

/** The blobs that revisions name, each once. */
export function namedBlobs(items: readonly WithAttachments[]): string[] {
  const hashes = new Set<string>()
  for (const { attachments } of items) if (attachments !== undefined) for (const { blob } of attachments) hashes.add(blob)
  return [...hashes]
}

/** Copies one blob: a chunk at a time, however large it is. */
export async function copyBlob(source: ShardReplica, target: ShardReplica, hash: string, call: CallContext): Promise<void> {
  const written = await target.writeBlob(source.readBlob(hash, null, call), call)
  if (written.hash !== hash) throw new ReplicaError('damaged_blob', `the blob ${hash} arrived as ${written.hash}`)
}

/**
 * Brings the blobs that revisions name to a target that lacks them, before the revisions.
 *
 * @returns the revisions whose blobs the target has now; the others' are not on the source
 */
export async function bringBlobs<Item extends WithAttachments>(
  source: ShardReplica, target: ShardReplica, items: readonly Item[], call: CallContext,
): Promise<readonly Item[]> {
  const hashes = namedBlobs(items)
  if (hashes.length === 0) return items
  const found = await target.hasBlobs(hashes, call)
  const lost = new Set<string>()
  for (const [index, hash] of hashes.entries()) {
    if (found[index]) continue
    try {
      await copyBlob(source, target, hash, call)
    } catch (error) {
      const { code } = asReplicaError(error)
      if (code !== 'missing_blob' && code !== 'damaged_blob') throw error
      lost.add(hash)
    }
  }
  return lost.size === 0 ? items : items.filter(({ attachments = [] }) => !attachments.some(({ blob }) => lost.has(blob)))
}

export interface ProvideOptions {
  /** Write them anew although they seem to be there: what is there is damaged. */
  readonly replace?: boolean
  /** `from` is another shard than the target's. */
  readonly isElsewhere?: boolean
}

/**
 * Makes sure that one replica has blobs, from whichever replica of `from` has them.
 *
 * @throws ReplicaError `missing_blob` when no replica gives one of them; where one that does not answer may have it, that is the cause
 */
export async function provideBlobs(
  scope: CoordinatorScope, target: Peer, hashes: readonly string[], from: ShardPlace, requestId: string, { replace, isElsewhere }: ProvideOptions = {},
): Promise<void> {
  const call = writeCall(scope.options.storeTimeoutMs, { requestId })
  const found = await target.replica.hasBlobs(hashes, call)
  for (const [index, hash] of hashes.entries()) if (!found[index] || replace === true) await provideBlob(scope, target, hash, from, isElsewhere === true, call)
}

async function provideBlob(
  scope: CoordinatorScope, target: Peer, hash: string, from: ShardPlace, isElsewhere: boolean, call: CallContext,
): Promise<void> {
  const silent = scope.access.notAsked(from)
  for (const source of scope.access.peers(from)) {
    if ((source.node === target.node && !isElsewhere) || !scope.access.isReachable(source.node)) continue
    try {
      return await copyBlob(source.replica, target.replica, hash, call)
    } catch (error) {
      const failure = asReplicaError(error)
      const { code, message } = failure
      if (code !== 'missing_blob' && code !== 'damaged_blob') silent.push(failure)
      scope.runtime.log.debug({ node: source.node, blob: hash, code, error: message, requestId: call.requestId }, 'a replica could not give attachment content')
    }
  }
  throw new ReplicaError('missing_blob', `no replica that answers has the blob ${hash}`, { cause: silent[0] })
}
