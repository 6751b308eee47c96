/**
 * The leader's part of the consensus core. It sends the log to every member and records how far each has come.
 * `RaftCore` makes one for each term in which it leads.
 */
import type { LogEntry, RaftMessage, VotingConfiguration } from '@sectional/core'
import { majority } from '../quorum/majority.ts'
import { majorityReached } from './quorum-math.ts'
import { Progress } from './progress.ts'
import type { RaftLog } from './raft-log.ts'
import type { RaftOptions, RaftSnapshot } from './raft-work.ts'
import { SnapshotTransfer } from './snapshot-pieces.ts'

/** The part of the core that `LogReplication` reads, and the function with which it sends. */
export interface ReplicationHost {
  readonly id: string
  readonly term: number
  readonly commit: number
  readonly log: RaftLog
  readonly options: RaftOptions
  readonly snapshot: RaftSnapshot
  send(message: RaftMessage): void
}

/** A learner becomes a voter only when it lags by at most this number of entries. */
const caughtUpEntries = 64

export class LogReplication {
  /**
   * Rises with each broadcast. Answers carry the round, so that a majority of answers to a round proves that this node
   * still led when the round began.
   */
  round = 1
  readonly #host: ReplicationHost
  readonly #followers = new Map<string, Progress>()
  #configuration: VotingConfiguration
  #ownMatch = 0

  constructor(host: ReplicationHost, configuration: VotingConfiguration) {
    this.#host = host
    this.#configuration = configuration
    this.setConfiguration(configuration, false)
  }

  /** Begins to send to new members, which count as up when `active` is true, and stops sending to members that left. */
  setConfiguration(configuration: VotingConfiguration, active: boolean): void {
    this.#configuration = configuration
    const members = [...configuration.voters, ...configuration.learners].filter(node => node !== this.#host.id)
    for (const node of [...this.#followers.keys()]) if (!members.includes(node)) this.#followers.delete(node)
    for (const node of members) {
      if (this.#followers.has(node)) continue
      this.round += 1
      this.#followers.set(node, new Progress(this.#host.log.lastIndex + 1, this.round, active))
    }
  }

  progress(node: string): Progress | undefined { return this.#followers.get(node) }

  /** Records that this node's own log is on disk up to `index`. */
  persistedSelf(index: number): void { this.#ownMatch = index }

  /** Returns the greatest index that a majority of voters has on disk. */
  majorityMatch(): number { return majorityReached(this.#configuration.voters, voter => this.matchOf(voter)) }

  /**
   * Returns the newest round that a majority of voters has answered. A leader that is not a voter needs the majority
   * from the other nodes.
   */
  majorityRound(): number {
    return majorityReached(
      this.#configuration.voters,
      voter => voter === this.#host.id ? this.round : this.#followers.get(voter)?.round ?? 0,
    )
  }

  matchOf(node: string): number {
    return node === this.#host.id ? this.#ownMatch : this.#followers.get(node)?.match ?? 0
  }

  /** True when the member answered within the last one or two election timeouts. */
  isActive(node: string): boolean {
    const follower = this.#followers.get(node)
    return node === this.#host.id || follower?.active === true || follower?.wasActive === true
  }

  /** Returns the members that lost entries which they had acknowledged in this term. */
  wentBack(): readonly string[] {
    return [...this.#followers].filter(([, follower]) => follower.wentBack).map(([node]) => node)
  }

  caughtUp(node: string): boolean {
    const follower = this.#followers.get(node)
    return follower !== undefined && this.isActive(node) && follower.state === 'replicate'
      && follower.match + caughtUpEntries >= this.#host.log.lastIndex
  }

  /** Returns whether a majority of voters answered since the last check, and begins the next period. */
  checkQuorum(): boolean {
    const active = this.#configuration.voters.filter(voter =>
      voter === this.#host.id || this.#followers.get(voter)?.active === true).length
    for (const follower of this.#followers.values()) {
      follower.wasActive = follower.active
      follower.active = false
    }
    return active >= majority(this.#configuration.voters.length)
  }

  /** Sends to each follower the entries that it lacks. */
  broadcast(): void {
    for (const node of this.#followers.keys()) this.#sendEntries(node)
  }

  /** Sends the commit index to every follower at once. */
  broadcastCommit(): void {
    this.round += 1
    for (const [node, follower] of this.#followers) {
      follower.commitSent(this.round, this.#host.commit)
      if (!this.#sendEntries(node)) this.#sendEmpty(node, follower)
    }
  }

  /**
   * Sends one empty message to each follower. It maintains this leader's authority, reveals lost messages and carries
   * the commit index.
   */
  heartbeat(): void {
    this.round += 1
    for (const [node, follower] of this.#followers) {
      follower.commitSent(this.round, this.#host.commit)
      if (follower.state === 'snapshot') this.#resendPiece(node, follower)
      this.#sendEmpty(node, follower)
    }
  }

  /** Handles one answer. Returns true when the follower's log grew. */
  answered(message: RaftMessage & { readonly type: 'append-reply' }): boolean {
    const follower = this.#followers.get(message.from)
    if (!follower?.answered(message.round, message.success ? message.matchIndex : 0)) return false
    if (!message.success) {
      if (follower.refused(message.matchIndex, message.conflictIndex, message.round)) this.#sendEntries(message.from)
      return false
    }
    const grew = follower.accepted(message.matchIndex, this.round)
    const lacksCommit = follower.state === 'replicate'
      && follower.sentCommit < Math.min(this.#host.commit, follower.match)
    if (!this.#sendEntries(message.from) && lacksCommit) this.#sendEmpty(message.from, follower)
    return grew
  }

  /** Handles the answer to a piece of a snapshot, and sends the next piece. */
  snapshotAnswered(message: RaftMessage & { readonly type: 'snapshot-reply' }): void {
    const follower = this.#followers.get(message.from)
    if (!follower?.answered(message.round, 0)) return
    if (follower.transfer?.answered(message.index, message.received)) this.#sendPiece(message.from, follower)
  }

  /** Sends entries while the follower's window has room. Returns false when nothing was sent. */
  #sendEntries(node: string): boolean {
    const follower = this.#followers.get(node)
    const { options, log } = this.#host
    let sent = false
    while (follower && mayAppend(follower, log.lastIndex, options.maxAppendsInFlight)) {
      const previousTerm = log.term(follower.next - 1)
      if (previousTerm === undefined) return this.#sendSnapshot(node, follower)
      const entries = log.page(follower.next, options.maxEntriesPerAppend, options.maxBytesPerAppend)
      this.#sendAppend(node, follower, {
        previousIndex: follower.next - 1, previousTerm, entries, commit: this.#host.commit,
      })
      sent = true
      if (follower.state === 'probe') { follower.paused = true; break }
      follower.next += entries.length
      follower.inflight.push(follower.next - 1)
    }
    return sent
  }

  #sendEmpty(node: string, follower: Progress): void {
    const previousTerm = follower.state === 'snapshot' ? undefined : this.#host.log.term(follower.next - 1)
    // An append behind index 0 tells a follower that waits for a snapshot that this leader is alive and how far the
    // follower lags. The follower commits nothing because of it.
    if (previousTerm === undefined) {
      this.#sendAppend(node, follower, { previousIndex: 0, previousTerm: 0, entries: [], commit: this.#host.commit })
    } else this.#sendAppend(node, follower, {
      previousIndex: follower.next - 1, previousTerm, entries: [], commit: this.#host.commit,
    })
    if (previousTerm === undefined && follower.state !== 'snapshot') this.#sendSnapshot(node, follower)
  }

  #sendAppend(
    node: string, follower: Progress,
    content: {
      readonly previousIndex: number
      readonly previousTerm: number
      readonly entries: readonly LogEntry[]
      readonly commit: number
    },
  ): void {
    follower.sentCommit = Math.max(
      follower.sentCommit, Math.min(content.commit, content.previousIndex + content.entries.length),
    )
    this.#host.send({
      type: 'append', from: this.#host.id, to: node, term: this.#host.term, round: this.round, ...content,
    })
  }

  #sendSnapshot(node: string, follower: Progress): boolean {
    // Snapshots are large, so they are not sent to a node that is down.
    if (!this.isActive(node)) return false
    follower.becomeSnapshot(new SnapshotTransfer(this.#host.snapshot, this.#host.options.snapshotPieceBytes))
    this.#sendPiece(node, follower)
    return true
  }

  #sendPiece(node: string, { transfer }: Progress): void {
    if (transfer) {
      this.#host.send({
        type: 'snapshot', from: this.#host.id, to: node, term: this.#host.term, round: this.round, ...transfer.next(),
      })
    }
  }

  #resendPiece(node: string, follower: Progress): void {
    const { transfer } = follower
    if (!transfer || !this.isActive(node)) return
    transfer.ticks += 1
    if (transfer.ticks >= this.#host.options.snapshotResendHeartbeats) this.#sendPiece(node, follower)
  }
}

/** Returns whether the follower lacks entries and its window has room for another message. */
function mayAppend({ paused, state, next, inflight }: Progress, lastIndex: number, inflightMax: number): boolean {
  return !paused && state !== 'snapshot' && next <= lastIndex && inflight.length < inflightMax
}
