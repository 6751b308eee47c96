/** Copies attachment content between replicas. */
import { mapBounded, ReplicaError } from '@sectional/core'
import type { AttachmentRecord, BlobReplica, CallContext } from '@sectional/core'
import { asReplicaError } from './replica-failures.ts'

/** Blobs that one pass copies concurrently. Each is made durable by itself, so one copy at a time mostly waits. */
const blobsCopiedMax = 4

type WithAttachments = { readonly attachments?: readonly AttachmentRecord[] }

/** Returns the hashes of the blobs that revisions reference, each once. */
export function namedBlobs(items: readonly WithAttachments[]): string[] {
  const hashes = new Set<string>()
  for (const { attachments } of items) {
    if (attachments !== undefined) for (const { blob } of attachments) hashes.add(blob)
  }
  return [...hashes]
}

/**
 * Copies one blob, a chunk at a time.
 * @throws ReplicaError of either replica; `damaged_blob` when the copied content has another hash
 */
export async function copyBlob(
  source: BlobReplica, target: BlobReplica, hash: string, call: CallContext,
): Promise<void> {
  const written = await target.writeBlob(source.readBlob({ hash, span: null }, call), call)
  if (written.hash !== hash) throw new ReplicaError('damaged_blob', `the copy of ${hash} has hash ${written.hash}`)
}

/**
 * Copies blobs that revisions reference to a target that lacks them. Must be done before the revisions are stored.
 *
 * @returns the revisions whose blobs the target has now; the source lacks blobs of the others
 */
export async function bringBlobs<Item extends WithAttachments>(
  source: BlobReplica, target: BlobReplica, items: readonly Item[], call: CallContext,
): Promise<readonly Item[]> {
  const hashes = namedBlobs(items)
  if (hashes.length === 0) return items
  const found = await target.hasBlobs(hashes, call)
  const lost = new Set<string>()
  await mapBounded(hashes.filter((_, index) => !found[index]), blobsCopiedMax, async hash => {
    try {
      await copyBlob(source, target, hash, call)
    } catch (error) {
      const { code } = asReplicaError(error)
      if (code !== 'missing_blob' && code !== 'damaged_blob') throw error
      lost.add(hash)
    }
  })
  if (lost.size === 0) return items
  return items.filter(({ attachments = [] }) => !attachments.some(({ blob }) => lost.has(blob)))
}
