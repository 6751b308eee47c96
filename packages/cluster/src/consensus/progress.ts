/** The leader's knowledge of one follower. */
import type { SnapshotTransfer } from './snapshot-pieces.ts'

/** The number of unanswered commit indexes that are remembered for one follower. */
const maxCommitsInFlight = 256

export class Progress {
  /** The follower's log is known to equal the leader's log up to this index. Invariant: 0 <= match < next. */
  match = 0
  /** Index of the next entry to send. */
  next: number
  /**
   * `probe`: the leader sends one message at a time, to find the index up to which the logs agree. `replicate`: the
   * leader sends entries without waiting for the answers to earlier ones. `snapshot`: the leader sends a snapshot and
   * waits for the answers to its pieces.
   */
  state: 'probe' | 'replicate' | 'snapshot' = 'probe'
  /** True in state `probe` while a message waits for its answer. */
  paused = false
  /** True when the follower answered since the last check of the quorum. */
  active: boolean
  /** The value of `active` before that check. A follower that was up a moment ago need not have answered again yet. */
  wasActive = false
  /** The newest round that the follower answered. */
  round: number
  /** The greatest commit index that the follower is known to have received. */
  knownCommit = 0
  /** The commit index that the follower reaches if none of the messages sent so far is lost. */
  sentCommit = 0
  /** The snapshot that is being sent; null in the other states. */
  transfer: SnapshotTransfer | null = null
  /**
   * True after the follower refused entries that it had acknowledged in this term: its disk holds an older copy of the
   * log. Stays true until the term ends.
   */
  wentBack = false
  /**
   * The leader's round when `match` last rose. An answer to a later round was given by a log that had reached `match`.
   */
  #matchRound = 0
  /** The last index of each message with entries that has not been answered. */
  readonly inflight: number[] = []
  /** Answers to earlier rounds belong to an earlier membership of a node with the same name. */
  readonly #firstRound: number
  readonly #commits: { readonly round: number; readonly commit: number }[] = []

  constructor(next: number, round: number, active: boolean) {
    this.next = next
    this.#firstRound = round
    this.round = round - 1
    this.active = active
  }

  /**
   * Handles any answer in this term. `holds` is the index up to which the follower's log is right, or 0 when it
   * refused. Returns false when the answer belongs to an earlier membership.
   */
  answered(round: number, holds: number): boolean {
    if (round < this.#firstRound) return false
    this.active = true
    this.round = Math.max(this.round, round)
    for (let sent =
      this.#commits[0]; sent !== undefined && sent.round <= round && sent.commit <= holds; sent = this.#commits[0]) {
      this.knownCommit = sent.commit
      this.#commits.shift()
    }
    return true
  }

  /** Records that messages of `round` and later carry at least `commit`. */
  commitSent(round: number, commit: number): void {
    this.#commits.push({ round, commit })
    if (this.#commits.length > maxCommitsInFlight) this.#commits.shift()
  }

  /**
   * Records that the follower holds everything up to `index`; `round` is the leader's current round. Returns true when
   * `match` rose.
   */
  accepted(index: number, round: number): boolean {
    while (this.inflight[0] !== undefined && this.inflight[0] <= index) this.inflight.shift()
    const news = index > this.match
    if (news) {
      this.match = index
      this.#matchRound = round
    }
    this.next = Math.max(this.next, index + 1)
    this.paused = false
    if (this.state === 'probe' || (this.transfer !== null && this.match >= this.transfer.snapshot.index)) {
      this.#becomeReplicate()
    }
    return news
  }

  /**
   * Handles the follower's refusal of `rejected` as the previous entry, in its answer to `round`. Returns false for an
   * outdated answer that changes nothing.
   */
  refused(rejected: number, conflictIndex: number, round: number): boolean {
    if (this.state === 'snapshot') return false
    if (rejected <= this.match && round > this.#matchRound) return this.#lostEntries(Math.min(rejected, conflictIndex))
    if (this.state === 'replicate' ? rejected <= this.match : rejected !== this.next - 1) return false
    this.becomeProbe(Math.max(this.match + 1, Math.min(rejected, conflictIndex)))
    return true
  }

  /** The follower's acknowledgements no longer count, and its entries are sent again. */
  #lostEntries(next: number): boolean {
    this.wentBack = true
    this.match = 0
    this.knownCommit = 0
    this.becomeProbe(next)
    return true
  }

  becomeProbe(next: number): void {
    this.state = 'probe'
    this.transfer = null
    this.next = next
    this.sentCommit = this.knownCommit
    this.paused = false
    this.inflight.length = 0
  }

  becomeSnapshot(transfer: SnapshotTransfer): void {
    this.state = 'snapshot'
    this.transfer = transfer
    this.inflight.length = 0
  }

  #becomeReplicate(): void {
    this.state = 'replicate'
    this.transfer = null
    this.next = this.match + 1
    this.inflight.length = 0
  }
}
