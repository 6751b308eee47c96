/**
 * Holds requests back after the start of a node, until it knows what it has missed while it was away.
 *
 * Before its links are open, a node that was away answers 404 for documents that were acknowledged meanwhile, takes
 * writes on its own (202), and decides edits that its peers decide as well, which leaves conflicts. Before it has
 * heard from the leader of the metadata log, it does not know of databases that were created or deleted meanwhile.
 */
import type { Clock } from '@sectional/runtime'
import { majority } from '../quorum/majority.ts'

/** What the wait looks at; each is asked again every time. */
export interface StartView {
  /** Addresses of peers that were not tried since the start (`PeerNetwork.untried`). */
  readonly untried: () => readonly string[]
  /** Names of the nodes that vote on the metadata; empty before this node was admitted. */
  readonly voters: () => readonly string[]
  /** Names of the members with an open link, and this node. */
  readonly connected: () => readonly string[]
  /** This node has applied everything that the leader had decided at some moment since the start. */
  readonly confirmed: () => boolean
}

export class StartWait {
  readonly #clock: Clock
  readonly #endMs: number
  readonly #view: StartView
  #over = false

  /** @param maxMs the wait ends after so many milliseconds, whoever has answered by then */
  constructor(clock: Clock, maxMs: number, view: StartView) {
    this.#clock = clock
    this.#endMs = clock.monotonic() + maxMs
    this.#view = view
  }

  /** What this node waits for, as a clause for clients; null once the wait is over. It never begins again. */
  reason(): string | null {
    if (this.#over) return null
    const reason = this.#clock.monotonic() < this.#endMs ? this.#pending() : null
    this.#over = reason === null
    return reason
  }

  #pending(): string | null {
    const untried = this.#view.untried()
    if (untried.length > 0) return `it has not reached the node at ${untried.join(', ')} yet, nor failed to`
    return this.#leaderMayAnswer() && !this.#view.confirmed() ? 'it has not heard from the leader of the cluster\'s metadata yet' : null
  }

  /** No leader can be elected without a majority of the voters, and a node that votes alone has all metadata on its disk. */
  #leaderMayAnswer(): boolean {
    const voters = this.#view.voters()
    const connected = this.#view.connected()
    const reached = voters.filter(voter => connected.includes(voter))
    return voters.length > 1 && reached.length >= majority(voters.length)
  }
}
