/** Majorities of voters. Checked against a version that tries every subset (test/consensus/quorum-math.test.ts). */

import { majority } from '../quorum/majority.ts'

export type VoteResult = 'won' | 'lost' | 'pending'

/** The outcome of an election given the votes so far; no voters: lost. */
export function tallyVotes(voters: readonly string[], votes: ReadonlyMap<string, boolean>): VoteResult {
  const granted = voters.filter(voter => votes.get(voter) === true).length
  const refused = voters.filter(voter => votes.get(voter) === false).length
  if (voters.length > 0 && granted >= majority(voters.length)) return 'won'
  return voters.length - refused < majority(voters.length) ? 'lost' : 'pending'
}

/** The greatest number that a majority of voters has reached; no voters: 0. */
export function majorityReached(voters: readonly string[], reached: (voter: string) => number): number {
  if (voters.length === 0) return 0
  const descending = voters.map(reached).sort((a, b) => b - a)
  return descending[majority(voters.length) - 1] ?? 0
}
