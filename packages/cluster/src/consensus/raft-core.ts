/**
 * The consensus core: Raft (Ongaro & Ousterhout 2014; section numbers are those of Ongaro's thesis) as a pure state
 * machine. It takes messages and ticks as input and returns batches of work, which the driver carries out. It does no
 * I/O and has neither a clock nor a source of randomness of its own.
 *
 * The driver must follow this contract; the safety of the protocol depends on it:
 *   1. Call `takeWork()` and send `messages` at once. They promise nothing that is not yet on disk.
 *   2. Make `persist` durable in one atomic write, then call `persisted(work)`.
 *   3. Restore and apply `restore` and `committed`, then send `messagesAfterPersist`.
 *   4. Repeat while `hasWork()` is true. Messages and ticks may arrive between any two of these steps.
 *
 * Extensions of the paper's basic protocol: pre-vote (9.6), so that a node that was cut off does not disturb the
 * cluster when it returns; check-quorum (6.2), so that a leader that lost its majority steps down; reads that are
 * confirmed by a round of heartbeats (6.4); membership changes of one node at a time (4.1). A membership change takes
 * effect when it is appended, and it may be appended only after an entry of the leader's own term is committed (the
 * correction of 2015 to section 4.1).
 */
import type { LogEntry, RaftMessage, VotingConfiguration } from '@sectional/core'
import { changeConfiguration, decodeConfiguration, encodeConfiguration } from './configuration.ts'
import type { ConfigurationChange } from './configuration.ts'
import { LogReplication } from './log-replication.ts'
import { tallyVotes } from './quorum-math.ts'
import type { RaftLog } from './raft-log.ts'
import { RaftOutbox } from './raft-outbox.ts'
import type { HardState, RaftOptions, RaftSnapshot, RaftWork, Refusal, Role } from './raft-work.ts'
import { SnapshotIntake } from './snapshot-pieces.ts'

export interface RaftStart {
  readonly id: string
  readonly hardState: HardState
  readonly log: RaftLog
  readonly snapshot: RaftSnapshot
  readonly options: RaftOptions
  /** A fraction in [0, 1). */
  readonly random: () => number
}

const maxPendingReads = 1024
const lostEntries = 'a majority of the voters has lost entries that it had acknowledged (older copies of data '
  + 'directories, or empty ones).'
const wayOut = 'go on as after the loss of a majority of the voters (docs/operations.md)'

export class RaftCore {
  readonly id: string
  readonly log: RaftLog
  readonly options: RaftOptions
  role: Role = 'follower'
  leader: string | null = null
  term: number
  vote: string | null
  commit: number
  /** The greatest commit index that any leader has sent. Can be greater than the last index of this node's log. */
  leaderCommit = 0
  snapshot: RaftSnapshot
  readonly #random: () => number
  #configurations: { readonly index: number; readonly configuration: VotingConfiguration }[]
  #replication: LogReplication | null = null
  readonly #votes = new Map<string, boolean>()
  /** Voters that granted or refused a vote while their disk was an older copy (see `tallyVotes`). */
  readonly #doubtful = new Set<string>()
  /**
   * The doubtful node that last claimed to lead in this term or a later one. Null after this node followed a leader or
   * became leader.
   */
  #ignored: string | null = null
  #electionElapsed = 0
  #heartbeatElapsed = 0
  #electionTimeout = 0
  #reads: { readonly id: number; readonly index: number; readonly round: number }[] = []

  readonly #outbox: RaftOutbox
  readonly #intake: SnapshotIntake

  constructor(start: RaftStart) {
    this.id = start.id
    this.log = start.log
    this.options = start.options
    this.#random = start.random
    this.snapshot = start.snapshot
    this.term = start.hardState.term
    this.vote = start.hardState.vote
    this.commit = Math.max(start.hardState.commit, start.snapshot.index)
    if (this.commit > this.log.lastIndex) {
      throw new Error(`raft: commit index ${this.commit} is beyond the log's end ${this.log.lastIndex}`)
    }
    this.#intake = new SnapshotIntake(start.options.snapshotBytesMax)
    this.#outbox = new RaftOutbox(this.log, start.snapshot, this.commit)
    this.#configurations = [{ index: start.snapshot.index, configuration: start.snapshot.configuration }]
    for (const entry of this.log.slice(start.snapshot.index + 1, this.log.lastIndex)) this.#noteConfiguration(entry)
    this.#drawElectionTimeout()
    // The only voter need not wait for another leader.
    const { voters } = this.configuration
    if (voters.length === 1 && voters[0] === this.id) this.#electionTimeout = 1
  }

  get configuration(): VotingConfiguration {
    return this.#configurations.at(-1)?.configuration ?? this.snapshot.configuration
  }

  tick(): void {
    this.#outbox.saveCommit(this.commit)
    this.#electionElapsed += 1
    if (this.role === 'leader') return this.#tickLeader()
    if (this.#electionElapsed >= this.#electionTimeout && this.#mayCampaign()) this.#campaign(true)
  }

  /**
   * @param doubtful true when the sender's disk is an older copy of the disk that it had before, or holds another log.
   *   This node neither votes for such a sender nor follows it: entries that the sender lacks may be committed here,
   *   and the sender may claim to lead in a term that had another leader.
   */
  step(message: RaftMessage, doubtful = false): void {
    if (doubtful && message.type === 'vote-request') return
    if (doubtful && (message.type === 'append' || message.type === 'snapshot')) return this.#ignoreLeader(message)
    if (doubtful) this.#doubtful.add(message.from)
    else this.#doubtful.delete(message.from)
    if (message.term > this.term && !this.#acceptHigherTerm(message)) return
    if (message.term < this.term && !(message.type === 'vote-request' && message.preVote)) {
      return this.#answerStale(message)
    }
    switch (message.type) {
      case 'vote-request': return this.#handleVoteRequest(message)
      case 'vote-reply': return this.#handleVoteReply(message)
      case 'append': return this.#handleAppend(message)
      case 'snapshot': return this.#handleSnapshot(message)
      case 'append-reply': return this.#handleAppendReply(message)
      case 'snapshot-reply': return this.#replication?.snapshotAnswered(message)
    }
  }

  /**
   * Appends a command and returns its position. The command is committed if the entry that is applied at `index` has
   * this `term`; another term there means that the command was lost.
   */
  propose(payload: Uint8Array): { readonly index: number; readonly term: number } | Refusal {
    if (this.role !== 'leader') return 'not-leader'
    if (this.log.lastIndex - this.commit >= this.options.maxUncommittedEntries) return 'busy'
    return this.#appendOwn('command', payload)
  }

  /**
   * Appends a change of membership. Returns `busy` while another change, or the first entry of this term, is not
   * committed yet.
   * @throws Error when the change does not fit the configuration (see `changeConfiguration`)
   */
  proposeConfiguration(change: ConfigurationChange): { readonly index: number; readonly term: number } | Refusal {
    if (this.role !== 'leader') return 'not-leader'
    const last = this.#configurations.at(-1)
    if ((last && last.index > this.commit) || this.log.term(this.commit) !== this.term) return 'busy'
    return this.#appendOwn('configuration', encodeConfiguration(changeConfiguration(this.configuration, change)))
  }

  /**
   * Asks for the index that a read must wait for, so that it sees everything that was decided before this call. The
   * answer arrives in `RaftWork.reads`.
   */
  readIndex(id: number): void {
    const leads = this.role === 'leader' && this.#replication !== null && this.#reads.length < maxPendingReads
    if (!leads || this.log.term(this.commit) !== this.term) return this.#outbox.answerRead(id, null)
    this.#replication?.heartbeat()
    this.#reads.push({ id, index: this.commit, round: this.#replication?.round ?? 0 })
    this.#confirmReads()
  }

  /** Drops log entries up to `keepAfter`. The snapshot, which is of applied state, covers them. */
  compact(snapshot: RaftSnapshot, keepAfter: number): void {
    if (snapshot.index > this.#outbox.handedOut) {
      throw new Error(`raft: the snapshot at ${snapshot.index} is ahead of the applied index ${this.#outbox.handedOut}`)
    }
    if (snapshot.index <= this.snapshot.index) return
    this.snapshot = snapshot
    const newest = this.#configurations.findLastIndex(entry => entry.index <= snapshot.index)
    this.#configurations.splice(0, newest)
    if (keepAfter > this.log.baseIndex) this.log.compact(Math.min(keepAfter, snapshot.index))
  }

  /** The configuration that was in effect at an applied index, to be stored in a snapshot of that index. */
  configurationAt(index: number): VotingConfiguration {
    return this.#configurations.findLast(entry => entry.index <= index)?.configuration ?? this.snapshot.configuration
  }

  /** On the leader: true when a learner has (nearly) the whole log. */
  caughtUp(node: string): boolean { return this.#replication?.caughtUp(node) ?? false }

  /** On the leader: true when a member answered within the last one or two election timeouts. */
  isActive(node: string): boolean { return this.#replication?.isActive(node) ?? false }

  /** On the leader: the greatest index up to which the member's log is known to equal this log. */
  matchOf(node: string): number { return this.#replication?.matchOf(node) ?? 0 }

  /** The node that claims to lead but is not followed because its disk is in doubt; null when there is none. */
  get ignoredLeader(): string | null { return this.#ignored }

  /**
   * On the leader: members that lost entries which they had acknowledged in this term, because their disks are older
   * copies.
   */
  wentBack(): readonly string[] { return this.#replication?.wentBack() ?? [] }

  /** On the leader: the greatest commit index that the member is known to have received. */
  knownCommitOf(node: string): number {
    return node === this.id ? this.commit : this.#replication?.progress(node)?.knownCommit ?? 0
  }

  hasWork(): boolean { return this.#outbox.hasWork(this.commit) }

  takeWork(): RaftWork { return this.#outbox.take({ term: this.term, vote: this.vote, commit: this.commit }) }

  /**
   * Returns the last work before a clean stop. It also saves the commit index, so that the next start knows what was
   * committed.
   */
  takeLastWork(): RaftWork {
    this.#outbox.saveCommit(this.commit)
    return this.takeWork()
  }

  /** The driver calls this when the work's `persist` is on disk. */
  persisted(work: RaftWork): void {
    if (!work.persist) return
    const { hardState } = work.persist
    this.#outbox.persisted(work.persist)
    this.#replication?.persistedSelf(this.#outbox.stableIndex)
    if (this.role === 'leader') this.#advanceCommit()
    if (this.role === 'candidate' && hardState.term === this.term && hardState.vote === this.id) {
      this.#recordVote(this.id, true)
    }
  }

  // Elections

  #campaign(preVote: boolean): void {
    this.role = preVote ? 'pre-candidate' : 'candidate'
    this.leader = null
    this.#replication = null
    this.#votes.clear()
    this.#electionElapsed = 0
    this.#drawElectionTimeout()
    if (!preVote) this.#setTerm(this.term + 1, this.id)
    const { lastIndex, lastTerm } = this.log
    for (const voter of this.configuration.voters) {
      if (voter === this.id) continue
      this.#outbox.promise({
        type: 'vote-request', from: this.id, to: voter, term: preVote ? this.term + 1 : this.term, lastIndex, lastTerm,
        preVote,
      })
    }
    // A node's vote for itself counts only after it is on disk (`persisted`): otherwise the node could vote twice in
    // one term after a crash.
    if (preVote) this.#recordVote(this.id, true)
  }

  /**
   * True when this node is a voter, also while its removal is in its log but not committed. Such a node may be the only
   * one whose log is long enough to win; it then commits its own removal (4.2.2).
   */
  #mayCampaign(): boolean {
    return this.#configurations.some(({ configuration }, at) =>
      (this.#configurations[at + 1]?.index ?? Infinity) > this.commit && configuration.voters.includes(this.id))
  }

  #handleVoteRequest(message: RaftMessage & { readonly type: 'vote-request' }): void {
    const free = this.vote === message.from || (this.vote === null && this.leader === null)
      || (message.preVote && message.term > this.term)
    const granted = message.term >= this.term && free && this.log.isUpToDate(message.lastIndex, message.lastTerm)
    if (granted && !message.preVote) { this.#electionElapsed = 0; this.#setTerm(this.term, message.from) }
    this.#outbox.promise({
      type: 'vote-reply', from: this.id, to: message.from, term: granted ? message.term : this.term, granted,
      preVote: message.preVote,
    })
  }

  #handleVoteReply(message: RaftMessage & { readonly type: 'vote-reply' }): void {
    if (this.role !== (message.preVote ? 'pre-candidate' : 'candidate')) return
    this.#recordVote(message.from, message.granted)
  }

  #recordVote(voter: string, granted: boolean): void {
    if (!this.#votes.has(voter)) this.#votes.set(voter, granted)
    const result = tallyVotes(this.configuration.voters, this.#votes, this.#doubtful)
    if (result === 'lost') this.#becomeFollower(this.term, null)
    else if (result === 'won' && this.role === 'pre-candidate') this.#campaign(false)
    else if (result === 'won') this.#becomeLeader()
  }

  #becomeLeader(): void {
    this.role = 'leader'
    this.leader = this.id
    this.#ignored = null
    this.#electionElapsed = 0
    this.#heartbeatElapsed = 0
    this.#replication = new LogReplication(this, this.configuration)
    this.#replication.persistedSelf(this.#outbox.stableIndex)
    this.#appendOwn('noop', new Uint8Array(0))
  }

  #becomeFollower(term: number, leader: string | null): void {
    if (term > this.term) this.#setTerm(term, null)
    this.role = 'follower'
    this.leader = leader
    this.#replication = null
    this.#electionElapsed = 0
    this.#drawElectionTimeout()
    for (const read of this.#reads) this.#outbox.answerRead(read.id, null)
    this.#reads = []
  }

  /** Returns false when the message must be ignored because this node receives messages from a leader. */
  #acceptHigherTerm(message: RaftMessage): boolean {
    if (message.type === 'vote-request') {
      if (this.leader !== null && this.#electionElapsed < this.options.electionTicks) return false
      if (message.preVote) return true
    }
    if (message.type === 'vote-reply' && message.preVote && message.granted) return true
    this.#becomeFollower(message.term, message.type === 'append' || message.type === 'snapshot' ? message.from : null)
    return true
  }

  /**
   * Informs the leader of an earlier term that a newer term has begun. That node may lead the newer term when the
   * answer arrives. The answer carries no round, because each term counts its own rounds.
   */
  #answerStale(message: RaftMessage): void {
    if (message.type !== 'append' && message.type !== 'snapshot') return
    this.#outbox.promise({
      type: 'append-reply', from: this.id, to: message.from, term: this.term, success: false, matchIndex: 0,
      conflictIndex: 0, round: 0,
    })
  }

  // Following

  #handleAppend(message: RaftMessage & { readonly type: 'append' }): void {
    this.#follow(message.from)
    this.#checkCommitted(message.from, message.previousIndex, message.previousTerm)
    for (const entry of message.entries) this.#checkCommitted(message.from, entry.index, entry.term)
    this.leaderCommit = Math.max(this.leaderCommit, message.commit)
    const reply = {
      type: 'append-reply', from: this.id, to: message.from, term: this.term, round: message.round,
    } as const
    // The leader also has every entry that is committed here.
    if (message.previousIndex < this.commit && message.previousIndex + message.entries.length <= this.commit) {
      this.#outbox.promise({ ...reply, success: true, matchIndex: this.commit, conflictIndex: 0 })
      return
    }
    if (message.previousIndex >= this.commit && this.log.term(message.previousIndex) !== message.previousTerm) {
      this.#outbox.promise({
        ...reply, success: false, matchIndex: message.previousIndex,
        conflictIndex: Math.max(this.commit + 1, this.log.conflictIndex(message.previousIndex)),
      })
      return
    }
    this.#appendReceived(message.entries)
    const matchIndex = message.previousIndex + message.entries.length
    this.commit = Math.max(this.commit, Math.min(message.commit, matchIndex))
    this.#intake.forgetUpTo(this.commit)
    this.#outbox.promise({ ...reply, success: true, matchIndex, conflictIndex: 0 })
  }

  /**
   * Checks that the leader has the committed entry at `index`. Every leader has every committed entry (3.6.3) as long
   * as voters keep what they acknowledged. A majority of voters that lost entries can elect a leader without them; a
   * node that still has the entries must not follow that leader, because its applied state would differ from theirs.
   * @throws Error when the leader's entry at `index` has another term than the committed entry here
   */
  #checkCommitted(leader: string, index: number, term: number): void {
    const own = index > this.commit ? undefined : this.log.term(index)
    if (own === undefined || own === term) return
    throw new Error(`${leader} leads without entry ${index} of the metadata log, which was committed (term ${own} `
      + `here, ${term} there): ${lostEntries} This node must not follow it. Stop the others, and ${wayOut}`)
  }

  #appendReceived(entries: readonly LogEntry[]): void {
    for (const entry of entries) {
      if (entry.index <= this.commit) continue
      const present = this.log.term(entry.index)
      if (present === entry.term) continue
      if (present !== undefined) this.#truncate(entry.index)
      this.log.append(entry)
      this.#noteConfiguration(entry)
    }
  }

  #truncate(index: number): void {
    if (index <= this.commit) {
      throw new Error(`raft: asked to drop committed entry ${index} (commit index ${this.commit})`)
    }
    this.log.truncate(index)
    this.#outbox.truncated(index)
    while ((this.#configurations.at(-1)?.index ?? 0) >= index) this.#configurations.pop()
  }

  #handleSnapshot(message: RaftMessage & { readonly type: 'snapshot' }): void {
    this.#follow(message.from)
    this.#checkCommitted(message.from, message.index, message.snapshotTerm)
    const reply = {
      type: 'append-reply', from: this.id, to: message.from, term: this.term, success: true, conflictIndex: 0,
      round: message.round,
    } as const
    if (message.index > this.commit && this.log.term(message.index) === message.snapshotTerm) {
      this.commit = message.index
    } else if (message.index > this.commit) {
      const taken = this.#intake.take(message)
      if (typeof taken === 'number') {
        this.#outbox.send({
          type: 'snapshot-reply', from: this.id, to: message.from, term: this.term, index: message.index,
          received: taken, round: message.round,
        })
        return
      }
      this.snapshot = taken
      this.log.reset(taken.index, taken.term)
      this.#configurations = [{ index: taken.index, configuration: taken.configuration }]
      this.commit = taken.index
      this.#outbox.replaced(taken)
    }
    this.#intake.forgetUpTo(this.commit)
    this.#outbox.promise({ ...reply, matchIndex: this.commit })
  }

  #ignoreLeader({ from, term }: RaftMessage): void {
    if (term >= this.term) this.#ignored = from
  }

  #follow(leader: string): void {
    this.#ignored = null
    if (this.role === 'leader') throw new Error(`raft: two leaders in term ${this.term}: ${this.id} and ${leader}`)
    if (this.role !== 'follower') this.#becomeFollower(this.term, leader)
    this.leader = leader
    this.#electionElapsed = 0
  }

  // Leading

  #tickLeader(): void {
    if (this.#electionElapsed >= this.options.electionTicks) {
      this.#electionElapsed = 0
      if (this.#replication?.checkQuorum() === false) return this.#becomeFollower(this.term, null)
    }
    this.#heartbeatElapsed += 1
    if (this.#heartbeatElapsed < this.options.heartbeatTicks) return
    this.#heartbeatElapsed = 0
    this.#replication?.heartbeat()
  }

  /**
   * @throws Error when a follower's log is longer than this leader's log: the leader then lost entries together with
   *   its disk
   */
  #handleAppendReply(message: RaftMessage & { readonly type: 'append-reply' }): void {
    if (this.role === 'leader' && message.success && message.matchIndex > this.log.lastIndex) {
      throw new Error(`${message.from} has the metadata log up to ${message.matchIndex}, and this leader to `
        + `${this.log.lastIndex}: ${lostEntries} This node must not lead. Stop it, and ${wayOut}`)
    }
    if (this.#replication?.answered(message)) this.#advanceCommit()
    this.#confirmReads()
  }

  #appendOwn(kind: LogEntry['kind'], payload: Uint8Array): { readonly index: number; readonly term: number } {
    const entry: LogEntry = { index: this.log.lastIndex + 1, term: this.term, kind, payload }
    this.log.append(entry)
    this.#noteConfiguration(entry)
    this.#replication?.broadcast()
    return { index: entry.index, term: entry.term }
  }

  /**
   * Counting replicas commits only entries of the leader's own term (3.6.2); earlier entries are committed together
   * with them.
   */
  #advanceCommit(): void {
    const index = this.#replication?.majorityMatch() ?? 0
    if (index <= this.commit || this.log.term(index) !== this.term) return
    this.commit = index
    this.#replication?.broadcastCommit()
    const configuration = this.#configurations.at(-1)
    if (configuration && configuration.index <= this.commit && !configuration.configuration.voters.includes(this.id)) {
      this.#becomeFollower(this.term, null)
    }
  }

  #confirmReads(): void {
    const round = this.#replication?.majorityRound() ?? 0
    while (this.#reads[0] !== undefined && this.#reads[0].round <= round) {
      const read = this.#reads.shift()
      if (read) this.#outbox.answerRead(read.id, read.index)
    }
  }

  // Shared

  send(message: RaftMessage): void { this.#outbox.send(message) }

  #noteConfiguration(entry: LogEntry): void {
    if (entry.kind !== 'configuration') return
    const configuration = decodeConfiguration(entry.payload)
    this.#configurations.push({ index: entry.index, configuration })
    this.#replication?.setConfiguration(configuration, true)
  }

  #setTerm(term: number, vote: string | null): void {
    if (term === this.term && vote === this.vote) return
    this.term = term
    this.vote = vote
    this.#outbox.changeHardState()
  }

  #drawElectionTimeout(): void {
    this.#electionTimeout = this.options.electionTicks + Math.floor(this.#random() * this.options.electionTicks)
  }
}
