/** Majorities of voters. Checked against a version that tries every subset (test/consensus/quorum-math.test.ts). */

import { majority } from '../quorum/majority.ts'

export type VoteResult = 'won' | 'lost' | 'pending'

/**
 * The outcome of an election given the votes so far; no voters: lost.
 *
 * The disks of `doubtful` voters may have lost entries that they acknowledged, so an entry may be committed by a majority of
 * which only the others still have it. Besides a majority in all, enough of the others must agree to have one voter in common
 * with those of any majority: with an odd number of voters as many as a majority, with an even number one fewer.
 */
export function tallyVotes(voters: readonly string[], votes: ReadonlyMap<string, boolean>, doubtful: ReadonlySet<string> = new Set()): VoteResult {
  const sound = voters.filter(voter => !doubtful.has(voter))
  const enough = (agree: (voter: string) => boolean): boolean => voters.filter(agree).length >= majority(voters.length)
    && sound.filter(agree).length > voters.length - majority(voters.length)
  if (voters.length > 0 && enough(voter => votes.get(voter) === true)) return 'won'
  return enough(voter => votes.get(voter) !== false) && voters.length > 0 ? 'pending' : 'lost'
}

/** The greatest number that a majority of voters has reached; no voters: 0. */
export function majorityReached(voters: readonly string[], reached: (voter: string) => number): number {
  if (voters.length === 0) return 0
  const descending = voters.map(reached).sort((a, b) => b - a)
  return descending[majority(voters.length) - 1] ?? 0
}
