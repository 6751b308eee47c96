import type { ReplicaInfo } from '@sectional/core'

/** A pair is compared again after a rest of so many times what the comparison took: purges cost at most a twentieth of the time. */
const restFactor = 20

interface ComparedPair {
  /** What both had purged when they were last compared. */
  readonly purges: string
  /** Monotonic time, in milliseconds, before which it is not compared again. */
  readonly restUntil: number
}

/**
 * - `equal`: nothing speaks against it
 * - `doubtful`: digests are to be compared
 * - `unsettled`: one lags, or the pair was compared a short while ago; to be looked at again
 */
export type Standing = 'equal' | 'doubtful' | 'unsettled'

/**
 * Tells of two replicas that have seen all of each other's changes whether they may differ nevertheless: their
 * counters differ, or one has purged something since they were last compared. A purge removes what replicas hold
 * without a row in the changes log, so that no pass looks at the document again.
 */
export class ReplicaDoubts {
  readonly #compared = new Map<string, ComparedPair>()

  /** @param now monotonic, in milliseconds */
  standing(pair: string, one: ReplicaInfo, other: ReplicaInfo, now: number): Standing {
    const seenAll = (other.seen[one.history] ?? 0) >= one.sequence && (one.seen[other.history] ?? 0) >= other.sequence
    if (!seenAll) return 'unsettled'
    const compared = this.#compared.get(pair)
    const purged = one.purgeSequence + other.purgeSequence > 0 && compared?.purges !== purgesOf(one, other)
    if (!purged && one.documentCount === other.documentCount && one.deletedCount === other.deletedCount) return 'equal'
    return compared !== undefined && now < compared.restUntil ? 'unsettled' : 'doubtful'
  }

  /** The comparison that followed took so many milliseconds, and made the replicas equal. */
  compared(pair: string, one: ReplicaInfo, other: ReplicaInfo, tookMs: number, now: number): void {
    this.#compared.set(pair, { purges: purgesOf(one, other), restUntil: now + restFactor * tookMs })
  }

  /** @param known whether the pair still exists */
  forget(known: (pair: string) => boolean): void {
    for (const pair of this.#compared.keys()) if (!known(pair)) this.#compared.delete(pair)
  }
}

function purgesOf(one: ReplicaInfo, other: ReplicaInfo): string {
  return `${one.history} ${one.purgeSequence} ${other.history} ${other.purgeSequence}`
}
