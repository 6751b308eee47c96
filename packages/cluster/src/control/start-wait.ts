/**
 * Delays requests after the start of a node until the node knows what changed while it was away.
 *
 * Without open links, a node that was away answers 404 for documents that were acknowledged meanwhile, accepts writes
 * alone (202), and decides edits that its peers decide as well, which creates conflicts. Before it has heard from the
 * leader of the metadata log, it does not know which databases were created or deleted meanwhile. Before the log has
 * recorded the start, an older copy of the data directory that is put back is not recognised, and the sequences that
 * this node has given to clients would be assigned again.
 */
import type { Clock } from '@sectional/runtime'
import { majority } from '../quorum/majority.ts'

/** The state that the wait checks; each function is called at each check. */
export interface StartView {
  /** Addresses of peers to which no connection was attempted since the start (`PeerNetwork.untried`). */
  readonly untried: () => readonly string[]
  /** Names of the voters of the metadata log; empty before this node was admitted. */
  readonly voters: () => readonly string[]
  /** Names of this node and of the members with an open link. */
  readonly connected: () => readonly string[]
  /** Returns true when this node has applied everything that the leader had decided at some moment since the start. */
  readonly confirmed: () => boolean
  /** Returns true when the metadata log has recorded this start, or never will. */
  readonly recorded: () => boolean
}

export class StartWait {
  readonly #clock: Clock
  readonly #endMs: number
  readonly #view: StartView
  #over = false

  /** @param maxMs milliseconds after which the wait ends, even if peers have not answered */
  constructor(clock: Clock, maxMs: number, view: StartView) {
    this.#clock = clock
    this.#endMs = clock.monotonic() + maxMs
    this.#view = view
  }

  /**
   * The reason why requests still wait, as a clause for clients; null once the wait is over. The wait never begins
   * again.
   */
  reason(): string | null {
    if (this.#over) return null
    const reason = this.#clock.monotonic() < this.#endMs ? this.#pending() : null
    this.#over = reason === null
    return reason
  }

  #pending(): string | null {
    const untried = this.#view.untried()
    if (untried.length > 0) return `it has not reached the node at ${untried.join(', ')} yet, nor failed to`
    if (!this.#leaderMayAnswer()) return null
    if (!this.#view.confirmed()) return 'it has not heard from the leader of the cluster\'s metadata yet'
    // No other node can tell an older copy of the disk of the only voter from a newer one.
    const isRecorded = this.#view.voters().length === 1 || this.#view.recorded()
    return isRecorded ? null : 'the cluster\'s metadata does not record its start yet'
  }

  /**
   * Returns whether a leader can be expected to answer: without a majority of the voters none can be elected. A node
   * that is the only voter has all metadata on its disk, but it applies the newest entries only when it leads: before,
   * it could serve a database whose deletion has already removed the documents.
   */
  #leaderMayAnswer(): boolean {
    const voters = this.#view.voters()
    const connected = this.#view.connected()
    const reached = voters.filter(voter => connected.includes(voter))
    return voters.length > 0 && reached.length >= majority(voters.length)
  }
}
