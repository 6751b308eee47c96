/** What a leader knows about one follower. */
import type { SnapshotTransfer } from './snapshot-pieces.ts'

/** Commit indexes on their way to one follower that are remembered until it answers. */
const maxCommitsInFlight = 256

export class Progress {
  /** The follower's log equals ours up to here. */
  match = 0
  /** Next entry to send. */
  next: number
  /**
   * probe: one message at a time, to find where the logs agree. replicate: entries flow, optimistically.
   * snapshot: waiting for the answer to one.
   */
  state: 'probe' | 'replicate' | 'snapshot' = 'probe'
  /** Probing, and a message is out. */
  paused = false
  /** Answered since the last check of the quorum. */
  active: boolean
  /** The same of the period before that check: someone who has just been up need not have answered again yet. */
  wasActive = false
  /** Newest round that it answered. */
  round: number
  /** Commit index that it surely knows. */
  knownCommit = 0
  /** Commit index that the messages sent so far let it take over, if none of them is lost. */
  sentCommit = 0
  /** The snapshot on its way. */
  transfer: SnapshotTransfer | null = null
  /**
   * It refused what it had acknowledged in this term: its disk has an older copy of the log. Stays true for the term.
   */
  wentBack = false
  /** The leader's round when `match` last rose: answers to later rounds tell of a log that had reached `match`. */
  #matchRound = 0
  /** Last index of each message with entries that is under way. */
  readonly inflight: number[] = []
  /** Answers to older rounds are about an earlier membership of the same name. */
  readonly #firstRound: number
  readonly #commits: { readonly round: number; readonly commit: number }[] = []

  constructor(next: number, round: number, active: boolean) {
    this.next = next
    this.#firstRound = round
    this.round = round - 1
    this.active = active
  }

  /**
   * Any answer in this term; `holds`: how far the follower's log is right (0: it refused).
   * False: the answer is not about this membership.
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

  /** Notes that messages of `round` and later carry at least `commit`. */
  commitSent(round: number, commit: number): void {
    this.#commits.push({ round, commit })
    if (this.#commits.length > maxCommitsInFlight) this.#commits.shift()
  }

  /** The follower holds everything up to `index`; `round`: the leader's round now. True when that is news. */
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
   * The follower refused `rejected` as previous entry, in its answer to `round`. False: an old answer that says nothing
   * new.
   */
  refused(rejected: number, conflictIndex: number, round: number): boolean {
    if (this.state === 'snapshot') return false
    if (rejected <= this.match && round > this.#matchRound) return this.#lostEntries(Math.min(rejected, conflictIndex))
    if (this.state === 'replicate' ? rejected <= this.match : rejected !== this.next - 1) return false
    this.becomeProbe(Math.max(this.match + 1, Math.min(rejected, conflictIndex)))
    return true
  }

  /** What it acknowledged counts no more; it is sent again. */
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
