import { majority } from '@sectional/server'

/**
 * A leader sends at least one round in every heartbeat interval. It steps down at the second check of its quorum
 * without answers, which is after ten rounds; a change of members adds one.
 */
const silentRoundsMax = 14

/** The rounds that one leader has sent in one term, and those that the other nodes have answered. */
export class LeaderRounds {
  readonly #leader: string
  #first: number | undefined
  #sent = 0
  /** The newest round that each node has answered, and the newest one that was sent when its last answer arrived. */
  readonly #answers = new Map<string, { readonly round: number; readonly heardAt: number }>()

  constructor(leader: string) {
    this.#leader = leader
  }

  /** The newest round that was sent. */
  get sent(): number {
    return this.#sent
  }

  answered(node: string, round: number): void {
    this.#answers.set(node, { round: Math.max(round, this.#answers.get(node)?.round ?? 0), heardAt: this.#sent })
  }

  /**
   * Records a round.
   * @returns the number of rounds for which no majority has answered, if they are too many
   */
  sending(round: number, configurations: readonly (readonly string[])[]): number | undefined {
    const first = this.#first ??= round
    this.#sent = Math.max(this.#sent, round)
    const silent = configurations.map(voters => this.#sent - nth(voters, voter =>
      voter === this.#leader ? this.#sent : this.#answers.get(voter)?.heardAt ?? first))
    const least = Math.min(...silent)
    return silent.length > 0 && least > silentRoundsMax ? least : undefined
  }

  /** Returns whether a majority has answered a round after `mark`. */
  confirmedSince(mark: number, voters: readonly string[]): boolean {
    return nth(voters, voter => voter === this.#leader ? Infinity : this.#answers.get(voter)?.round ?? 0) > mark
  }
}

/** Returns the greatest value that a majority of the voters has reached. */
function nth(voters: readonly string[], valueOf: (voter: string) => number): number {
  return voters.map(valueOf).sort((a, b) => b - a)[majority(voters.length) - 1] ?? Infinity
}
