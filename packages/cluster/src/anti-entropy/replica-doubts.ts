import type { ReplicaInfo } from '@sectional/core'

/**
 * After a comparison, a pair is not compared again for this many times the duration of the comparison. Comparisons
 * because of purges thus take at most a twentieth of the time.
 */
const restFactor = 20

interface ComparedPair {
  /** The purges that both replicas had recorded at their last comparison. */
  readonly purges: string
  /** Monotonic time in milliseconds before which the pair is not compared again. */
  readonly restUntil: number
}

/**
 * The state of a pair of replicas:
 * - `equal`: there is no sign of a difference
 * - `doubtful`: digests must be compared
 * - `unsettled`: one replica lags, or the pair was compared a short while ago; check it again later
 */
export type PairState = 'equal' | 'doubtful' | 'unsettled'

/**
 * Decides whether two replicas that have seen all of each other's changes may differ nevertheless. This is so when
 * their document counts differ, or when one has purged documents since they were last compared: a purge removes
 * revisions without a row in the changes log, so that no pass reads the document again.
 */
export class ReplicaDoubts {
  readonly #compared = new Map<string, ComparedPair>()

  /** @param now monotonic time in milliseconds */
  stateOf(pair: string, one: ReplicaInfo, other: ReplicaInfo, now: number): PairState {
    const seenAll = (other.seen[one.history] ?? 0) >= one.sequence && (one.seen[other.history] ?? 0) >= other.sequence
    if (!seenAll) return 'unsettled'
    const compared = this.#compared.get(pair)
    const purged = one.purgeSequence + other.purgeSequence > 0 && compared?.purges !== purgesOf(one, other)
    if (!purged && one.documentCount === other.documentCount && one.deletedCount === other.deletedCount) return 'equal'
    return compared !== undefined && now < compared.restUntil ? 'unsettled' : 'doubtful'
  }

  /** Records that a comparison made the replicas equal, and how many milliseconds it took. */
  compared(pair: string, one: ReplicaInfo, other: ReplicaInfo, tookMs: number, now: number): void {
    this.#compared.set(pair, { purges: purgesOf(one, other), restUntil: now + restFactor * tookMs })
  }

  /** @param known returns whether a pair still exists; other pairs are dropped */
  forget(known: (pair: string) => boolean): void {
    for (const pair of this.#compared.keys()) if (!known(pair)) this.#compared.delete(pair)
  }
}

function purgesOf(one: ReplicaInfo, other: ReplicaInfo): string {
  return `${one.history} ${one.purgeSequence} ${other.history} ${other.purgeSequence}`
}
