/** Decides by the recorded purges of a document whether revisions that arrive must be left out. */
import type { Purge } from '../contracts/shard-replica.ts'

/**
 * Returns the ids of the purges that name a revision, as a leaf or as an ancestor of one. A replica that has the
 * revision although it applied these purges received it again afterwards. It sends their ids with the revision
 * (`DocumentRevision.purges`).
 */
export function purgesOf(purges: readonly Purge[], revision: string): string[] {
  return purges.filter(({ paths }) =>
    paths.some(({ start, ids }) => ids.some((hash, index) => `${start - index}-${hash}` === revision)))
    .map(({ uuid }) => uuid)
}

/**
 * Whether the sender of a revision has not yet applied one of these purges, so that storing it would undo the purge.
 */
export function isPurged(purges: readonly Purge[], revision: string, appliedBySender: readonly string[] = []): boolean {
  return purgesOf(purges, revision).some(uuid => !appliedBySender.includes(uuid))
}
