/**
 * Computes majorities of voters. A test compares it with a version that tries every subset
 * (test/consensus/quorum-math.test.ts).
 */

import { majority } from '../quorum/majority.ts'

export type VoteResult = 'won' | 'lost' | 'pending'

/**
 * Returns the outcome of an election, given the votes so far. Without voters the election is lost.
 *
 * The disks of `doubtful` voters may have lost entries that they acknowledged. An entry can therefore be committed by a
 * majority of which only the sound (not doubtful) voters still have it. A candidate thus needs two things: a majority
 * of all voters, and enough sound voters that at least one of them was in any majority. For an odd number of voters
 * that is as many sound voters as a majority; for an even number, one fewer.
 */
export function tallyVotes(
  voters: readonly string[], votes: ReadonlyMap<string, boolean>, doubtful: ReadonlySet<string> = new Set(),
): VoteResult {
  const sound = voters.filter(voter => !doubtful.has(voter))
  const enough = (agree: (voter: string) => boolean): boolean => voters.filter(agree).length >= majority(voters.length)
    && sound.filter(agree).length > voters.length - majority(voters.length)
  if (voters.length > 0 && enough(voter => votes.get(voter) === true)) return 'won'
  return enough(voter => votes.get(voter) !== false) && voters.length > 0 ? 'pending' : 'lost'
}

/** Returns the greatest number that a majority of voters has reached; 0 without voters. */
export function majorityReached(voters: readonly string[], reached: (voter: string) => number): number {
  if (voters.length === 0) return 0
  const descending = voters.map(reached).sort((a, b) => b - a)
  return descending[majority(voters.length) - 1] ?? 0
}
