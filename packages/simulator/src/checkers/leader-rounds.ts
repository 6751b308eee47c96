import { majority } from '@sectional/server'

/**
 * A leader sends a round in every heartbeat interval, and more of them for reads and while the log grows. It steps
 * down at the second check of its quorum without answers, which is after ten intervals; a change of members adds one.
 * Its clock may be slow, so both the rounds and the time must be exceeded. Times are those of a machine without its
 * pauses, during which it sends nothing and steps down from nothing.
 */
const silentRoundsMax = 14
/** The heartbeat interval of runs with slow ticks: two ticks of 200 ms each. */
const heartbeatMsMax = 400
const silentMsMax = silentRoundsMax * heartbeatMsMax

interface Answer {
  /** The newest round that the node has answered. */
  readonly round: number
  /** The newest round that was sent when its last answer arrived. */
  readonly heardAt: number
  readonly heardMs: number
}

/** The rounds that one leader has sent in one term, and those that the other nodes have answered. */
export class LeaderRounds {
  readonly #leader: string
  #first: number | undefined
  #sent = 0
  readonly #answers = new Map<string, Answer>()
  #begunMs = 0

  constructor(leader: string) {
    this.#leader = leader
  }

  /** The newest round that was sent. */
  get sent(): number {
    return this.#sent
  }

  answered(node: string, round: number, nowMs: number): void {
    const newest = Math.max(round, this.#answers.get(node)?.round ?? 0)
    this.#answers.set(node, { round: newest, heardAt: this.#sent, heardMs: nowMs })
  }

  /**
   * Records a round.
   * @returns the number of rounds for which no majority has answered, if they are too many
   */
  sending(round: number, configurations: readonly (readonly string[])[], nowMs: number): number | undefined {
    if (this.#first === undefined) this.#begunMs = nowMs
    const first = this.#first ??= round
    this.#sent = Math.max(this.#sent, round)
    const silent = configurations.map(voters => this.#sent - nth(voters, voter =>
      voter === this.#leader ? this.#sent : this.#answers.get(voter)?.heardAt ?? first))
    const silentMs = configurations.map(voters => nowMs - nth(voters, voter =>
      voter === this.#leader ? nowMs : this.#answers.get(voter)?.heardMs ?? this.#begunMs))
    const least = Math.min(...silent)
    return silent.length > 0 && least > silentRoundsMax && Math.min(...silentMs) > silentMsMax ? least : undefined
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
