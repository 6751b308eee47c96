/** What a replica remembers of one document's purges, and what follows from it for revisions that arrive. */
import type { Purge } from '../contracts/shard-replica.ts'

/**
 * The purges that name a revision, as leaf or as ancestor of one. A replica that has a revision after it applied
 * them has it anew, and says so when it passes it on (`DocumentRevision.purges`).
 */
export function purgesOf(purges: readonly Purge[], revision: string): string[] {
  return purges.filter(({ paths }) =>
    paths.some(({ start, ids }) => ids.some((hash, index) => `${start - index}-${hash}` === revision)))
    .map(({ uuid }) => uuid)
}

/** Whether a revision comes from a replica that has not applied one of these purges yet, and would undo it. */
export function isPurged(purges: readonly Purge[], revision: string, appliedBySender: readonly string[] = []): boolean {
  return purgesOf(purges, revision).some(uuid => !appliedBySender.includes(uuid))
}
