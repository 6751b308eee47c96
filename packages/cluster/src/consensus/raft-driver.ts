/**
 * Carries out the work of the consensus core: it writes to disk before it sends promises, applies entries in order,
 * takes snapshots and delivers ticks. Each node has one driver. All protocol state is in the core and in the store; the
 * driver only holds the callers that wait for results.
 */
import { ReplicaError } from '@sectional/core'
import type { CallContext, LogEntry, RaftMessage, VotingConfiguration } from '@sectional/core'
import { RepeatedLines, sleep, StorageError } from '@sectional/runtime'
import type { Clock, Counter, Gauge, Histogram, Log, Metrics, Random, Store, Timer } from '@sectional/runtime'
import type { ConfigurationChange } from './configuration.ts'
import { RaftCore } from './raft-core.ts'
import { defaultRaftOptions } from './raft-work.ts'
import type { RaftOptions, RaftSnapshot, RaftWork, Refusal } from './raft-work.ts'
import { RaftStorage } from './raft-storage.ts'
import type { StagedSnapshot } from './raft-storage.ts'
import { snapshotChecksum } from './snapshot-pieces.ts'
import { Waiters } from './waiters.ts'

/**
 * The state machine that the log drives. Its state must depend on the entries alone, so that it is equal on all nodes.
 */
export interface ReplicatedStateMachine {
  /**
   * @throws Error when the entry is invalid; this node then stops, before its state differs from that of other nodes
   */
  apply(entry: LogEntry): unknown
  /**
   * Returns the state after the last applied entry. Calls `pause` between pieces of work, to give up the event loop.
   */
  snapshot(pause: () => Promise<void>): Promise<Uint8Array> | Uint8Array
  /**
   * Replaces the state by that of a snapshot; index 0 with no bytes is the empty state.
   * @param lastIndex the last index of the log behind the snapshot; entries up to it were already in the log at this
   *   start and are not new
   */
  restore(snapshot: RaftSnapshot, lastIndex: number, pause: () => Promise<void>): Promise<void> | void
  /** Called after each batch of `apply` calls and after `restore`. */
  settled(): void
}

export interface RaftDriverOptions {
  readonly raft: RaftOptions
  /**
   * Milliseconds of one tick. With the default options heartbeats are sent every 200 ms and elections start after 1 to
   * 2 s.
   */
  readonly tickMs: number
  /** Minimum number of applied entries between two snapshots, except where `snapshotLogBytes` requires one earlier. */
  readonly snapshotEntries: number
  /**
   * When the last snapshot has more bytes than this, the next one also waits until the entries applied since then have
   * as many bytes together. The cost of snapshots per entry thus does not grow with the state.
   */
  readonly snapshotFreeBytes: number
  /**
   * Bytes of applied entries after which a snapshot is taken even if they are few. If the last snapshot was larger, its
   * size is the limit instead.
   */
  readonly snapshotLogBytes: number
  /**
   * Entries that stay in the log behind a snapshot, so that a follower that was away briefly does not need the
   * snapshot.
   */
  readonly trailingEntries: number
  readonly maxPendingProposals: number
  /** Milliseconds until a failed write is tried again. */
  readonly storageRetryMs: number
}

export const defaultRaftDriverOptions: RaftDriverOptions = {
  raft: defaultRaftOptions, tickMs: 100, snapshotEntries: 1000, snapshotFreeBytes: 1024 * 1024,
  snapshotLogBytes: 16 * 1024 * 1024, trailingEntries: 200, maxPendingProposals: 1024, storageRetryMs: 1000,
}

/** Entries that are applied in one turn of the event loop. A start may have tens of thousands to apply. */
const entriesPerTurn = 500

export interface RaftDriverParts {
  readonly node: string
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly metrics: Metrics
  readonly store: Store
  readonly machine: ReplicatedStateMachine
  readonly options: RaftDriverOptions
  readonly send: (message: RaftMessage) => void
  /** Called when the role, the leader or the configuration may have changed. */
  readonly onChange: () => void
  /** Called when an invariant is broken. The consensus of this node has then stopped for good. */
  readonly onFatal: (error: Error) => void
}

export type ProposalOutcome =
  | { readonly kind: 'applied'; readonly index: number; readonly result: unknown }
  | { readonly kind: 'not-leader' }
  | { readonly kind: 'timeout' }

interface Proposal {
  readonly term: number
  readonly startedAt: number
  readonly settle: (outcome: ProposalOutcome) => void
}

export class RaftDriver {
  readonly #parts: RaftDriverParts
  readonly #storage: RaftStorage
  readonly #core: RaftCore
  readonly #stopping = new AbortController()
  readonly #proposals = new Map<number, Proposal>()
  readonly #reads = new Map<number, (index: number | null) => void>()
  readonly #appliedWaiters: Waiters
  readonly #spreadWaiters: Waiters
  readonly #gauges: { readonly term: Gauge; readonly leads: Gauge; readonly voters: Gauge; readonly applied: Gauge }
  readonly #commitSeconds: Histogram
  readonly #elections: Counter
  #nextRead = 1
  #appliedIndex: number
  #tickTimer: Timer | undefined
  #pump: Promise<void> = Promise.resolve()
  #pumping = false
  /** True while work that was taken from the core is not known to be on disk. */
  #unsaved = false
  /** Bytes of the payloads that were applied since the last snapshot was begun. */
  #bytesSinceSnapshot = 0
  /** Pending while a snapshot is being encoded and written. */
  #staging: Promise<void> | undefined
  #staged: StagedSnapshot | undefined
  #seen: readonly unknown[] = []
  #lastWriteFailure: StorageError | null = null
  readonly #repeated: RepeatedLines
  /**
   * The commit index that this node tries to reach, and since when; null when it has applied everything that it knows
   * to be committed.
   */
  #lag: { readonly index: number; readonly sinceMs: number } | null = null

  private constructor(parts: RaftDriverParts, storage: RaftStorage, core: RaftCore) {
    this.#parts = parts
    this.#repeated = new RepeatedLines(parts.log, parts.clock)
    this.#storage = storage
    this.#core = core
    this.#appliedIndex = core.snapshot.index
    this.#appliedWaiters = new Waiters(parts.clock)
    this.#spreadWaiters = new Waiters(parts.clock)
    const { metrics } = parts
    this.#gauges = {
      term: metrics.gauge('sectional_consensus_term', 'Term of the metadata log'),
      leads: metrics.gauge('sectional_consensus_leader', '1 while this node leads the metadata log'),
      voters: metrics.gauge('sectional_consensus_voters', 'Nodes that vote on the cluster metadata'),
      applied: metrics.gauge(
        'sectional_consensus_applied_index', 'Last entry of the metadata log that this node applied',
      ),
    }
    this.#commitSeconds = metrics.histogram(
      'sectional_consensus_commit_seconds', 'From proposal to application on the leader',
    )
    this.#elections = metrics.counter('sectional_consensus_elections_total', 'Elections won by this node')
  }

  /** Reads the store, applies what is known to be committed, and starts the ticks. */
  static async open(parts: RaftDriverParts): Promise<RaftDriver> {
    const storage = new RaftStorage(parts.store)
    const { hardState, snapshot, log } = await storage.load()
    const core = new RaftCore({
      id: parts.node, hardState, snapshot, log, options: parts.options.raft, random: () => parts.random.fraction(),
    })
    const driver = new RaftDriver(parts, storage, core)
    await parts.machine.restore(snapshot, log.lastIndex, driver.#pause)
    await driver.#run()
    driver.#scheduleTick()
    return driver
  }

  get leader(): string | null { return this.#core.leader }
  /**
   * The reason why the disk refuses writes now; null when it accepts them. Meanwhile this node applies no entry and
   * sends no promise.
   */
  get writeFailure(): StorageError | null { return this.#lastWriteFailure }
  get leads(): boolean { return this.#core.role === 'leader' }
  get term(): number { return this.#core.term }
  get applied(): number { return this.#appliedIndex }
  get configuration(): VotingConfiguration { return this.#core.configuration }

  /**
   * @param doubtful true when the sender's disk is an older copy of the disk that it had before, or holds another log
   */
  step(message: RaftMessage, doubtful = false): void {
    if (this.#stopping.signal.aborted) return
    this.#guarded(() => this.#core.step(message, doubtful))
  }

  /** Milliseconds for which this node has lacked an entry that a leader reported as committed; 0 when it lacks none. */
  get lagMs(): number { return this.#lag === null ? 0 : this.#parts.clock.monotonic() - this.#lag.sinceMs }

  /** Number of entries that a leader has committed and this node has not applied. */
  get lagEntries(): number { return Math.max(0, this.#core.leaderCommit - this.#appliedIndex) }

  /** The voters and learners of the newest configuration that is known to be committed. */
  get committedConfiguration(): VotingConfiguration { return this.#core.configurationAt(this.#core.commit) }

  /** The node that claims to lead but is not followed because its disk is in doubt; null when there is none. */
  get ignoredLeader(): string | null { return this.#core.ignoredLeader }

  /** On the leader: members whose disks are older copies of those that they had earlier in this term. */
  wentBack(): readonly string[] { return this.#core.wentBack() }

  /**
   * Proposes a command. The outcome `not-leader` means that this node does not lead, or stopped leading before the
   * outcome was known.
   * @throws ReplicaError `overloaded` when too many proposals wait
   */
  propose(payload: Uint8Array, context: CallContext): Promise<ProposalOutcome> {
    if (this.#stopping.signal.aborted) return Promise.resolve({ kind: 'not-leader' })
    if (this.#proposals.size >= this.#parts.options.maxPendingProposals) {
      return Promise.reject(new ReplicaError('overloaded', 'too many proposals wait for the metadata log'))
    }
    const placed = this.#core.propose(payload)
    if (placed === 'not-leader') return Promise.resolve({ kind: 'not-leader' })
    if (placed === 'busy') {
      return Promise.reject(new ReplicaError('overloaded', 'the metadata log has too many undecided entries'))
    }
    const { clock } = this.#parts
    const outcome = new Promise<ProposalOutcome>(resolve => {
      const timer = clock.setTimer(context.timeoutMs, () => settle({ kind: 'timeout' }))
      const settle = (outcome: ProposalOutcome): void => {
        timer.cancel()
        this.#proposals.delete(placed.index)
        resolve(outcome)
      }
      this.#proposals.set(placed.index, { term: placed.term, startedAt: clock.monotonic(), settle })
    })
    void this.#run()
    return outcome
  }

  /**
   * Starts a change of membership.
   * @throws Error when the change does not fit the configuration
   */
  changeConfiguration(change: ConfigurationChange): Refusal | 'started' {
    const placed = this.#core.proposeConfiguration(change)
    if (typeof placed === 'string') return placed
    void this.#run()
    return 'started'
  }

  /**
   * Returns the index that a read must wait for to see everything that was decided before this call; null when this
   * node does not lead, or cannot confirm that it leads within `timeoutMs`.
   */
  readIndex(timeoutMs: number): Promise<number | null> {
    const id = this.#nextRead
    this.#nextRead += 1
    const answer = new Promise<number | null>(resolve => {
      const timer = this.#parts.clock.setTimer(timeoutMs, () => settle(null))
      const settle = (index: number | null): void => { timer.cancel(); this.#reads.delete(id); resolve(index) }
      this.#reads.set(id, settle)
    })
    this.#guarded(() => this.#core.readIndex(id))
    return answer
  }

  /** Resolves to true when this node has applied `index`, and to false after `timeoutMs` or when this node stops. */
  waitApplied(index: number, timeoutMs: number): Promise<boolean> {
    return this.#appliedWaiters.wait(() => this.#appliedIndex >= index, timeoutMs)
  }

  /**
   * On the leader: resolves to true when all `nodes()` (evaluated at each check) know that `index` is committed, or
   * when this node no longer leads; to false after `timeoutMs`.
   */
  waitSpread(index: number, nodes: () => readonly string[], timeoutMs: number): Promise<boolean> {
    return this.#spreadWaiters.wait(
      () => !this.leads || nodes().every(node => this.#core.knownCommitOf(node) >= index), timeoutMs,
    )
  }

  /** Checks the conditions of the `waitSpread` callers again. Call this after links changed. */
  checkSpread(): void { this.#spreadWaiters.check() }

  isActive(node: string): boolean { return this.#core.isActive(node) }
  caughtUp(node: string): boolean { return this.#core.caughtUp(node) }
  matchOf(node: string): number { return this.#core.matchOf(node) }

  /** Stops the ticks and ends all waits. Everything that was promised is already on disk. */
  async stop(): Promise<void> {
    if (this.#stopping.signal.aborted) return this.#pump
    this.#halt()
    await this.#pump
    await this.#staging
    await this.#storage.idle()
    // Work that follows unsaved work must not be saved either, because the stored log would have a gap.
    if (this.#unsaved) return
    const { persist } = this.#core.takeLastWork()
    if (!persist) return
    try {
      await this.#storage.write(persist)
    } catch (error) {
      this.#parts.log.warn(
        { err: error }, 'the newest cluster metadata was not saved at the stop; this node will fetch it again',
      )
    }
  }

  #halt(): void {
    this.#stopping.abort()
    this.#tickTimer?.cancel()
    for (const proposal of [...this.#proposals.values()]) proposal.settle({ kind: 'not-leader' })
    for (const settle of [...this.#reads.values()]) settle(null)
    this.#appliedWaiters.stop()
    this.#spreadWaiters.stop()
  }

  #scheduleTick(): void {
    if (this.#stopping.signal.aborted) return
    this.#tickTimer = this.#parts.clock.setTimer(this.#parts.options.tickMs, () => {
      this.#scheduleTick()
      this.#noteLag()
      this.#guarded(() => this.#core.tick())
    })
  }

  #noteLag(): void {
    if (this.#lag !== null && this.#appliedIndex < this.#lag.index) return
    const { leaderCommit } = this.#core
    this.#lag = leaderCommit > this.#appliedIndex
      ? { index: leaderCommit, sinceMs: this.#parts.clock.monotonic() }
      : null
  }

  #guarded(input: () => void): void {
    try {
      input()
    } catch (error) {
      return this.#fail(error)
    }
    void this.#run()
  }

  #fail(error: unknown): void {
    const cause = error instanceof Error ? error : new Error(String(error))
    this.#parts.log.error({ err: cause }, 'consensus stopped: an invariant is broken')
    this.#halt()
    this.#parts.onFatal(cause)
  }

  /** Carries out work until none is left. At most one such loop runs at a time. */
  #run(): Promise<void> {
    if (!this.#pumping) this.#pump = this.#workAll()
    return this.#pump
  }

  async #workAll(): Promise<void> {
    this.#pumping = true
    try {
      while (this.#moreWork()) await this.#work(this.#core.takeWork())
    } catch (error) {
      this.#fail(error)
    } finally {
      this.#pumping = false
    }
  }

  #moreWork(): boolean {
    if (this.#stopping.signal.aborted) return false
    this.#noteRole()
    this.#spreadWaiters.check()
    return this.#core.hasWork() || this.#staged !== undefined
  }

  async #work(work: RaftWork): Promise<void> {
    for (const message of work.messages) this.#parts.send(message)
    if (work.persist) {
      const { persist } = work
      this.#unsaved = true
      if (!await this.#retryWrite(() => this.#storage.write(persist))) return
      this.#unsaved = false
      this.#core.persisted(work)
    }
    await this.#applyWork(work)
    for (const message of work.messagesAfterPersist) this.#parts.send(message)
    await this.#replaceSnapshot()
    this.#takeSnapshot()
  }

  async #applyWork(work: RaftWork): Promise<void> {
    if (work.restore) {
      await this.#parts.machine.restore(work.restore, work.restore.index, this.#pause)
      this.#appliedIndex = work.restore.index
      this.#bytesSinceSnapshot = 0
      this.#parts.log.info({ index: work.restore.index }, 'took over a snapshot of the cluster metadata')
    }
    for (const [at, entry] of work.committed.entries()) {
      if (at % entriesPerTurn === entriesPerTurn - 1) await this.#pause()
      const result = this.#parts.machine.apply(entry)
      this.#appliedIndex = entry.index
      this.#bytesSinceSnapshot += entry.payload.length
      this.#settleProposal(entry, result)
    }
    if (work.restore || work.committed.length > 0) this.#parts.machine.settled()
    for (const { id, index } of work.reads) this.#reads.get(id)?.(index)
    this.#gauges.applied.set(this.#appliedIndex)
    this.#appliedWaiters.check()
  }

  #settleProposal(entry: LogEntry, result: unknown): void {
    const proposal = this.#proposals.get(entry.index)
    if (!proposal) return
    if (proposal.term !== entry.term) return proposal.settle({ kind: 'not-leader' })
    this.#commitSeconds.observe((this.#parts.clock.monotonic() - proposal.startedAt) / 1000)
    proposal.settle({ kind: 'applied', index: entry.index, result })
  }

  /** Begins to encode and write a snapshot when one is due. The log continues meanwhile. */
  #takeSnapshot(): void {
    if (this.#staging || this.#staged || this.#stopping.signal.aborted || !this.#isSnapshotDue()) return
    const index = this.#appliedIndex
    const point = { index, term: this.#termOf(index), configuration: this.#core.configurationAt(index) }
    const encoding = this.#parts.machine.snapshot(this.#pause)
    this.#bytesSinceSnapshot = 0
    this.#staging = this.#stageSnapshot(point, encoding).catch((error: unknown) => this.#fail(error)).finally(() => {
      this.#staging = undefined
    })
  }

  #isSnapshotDue(): boolean {
    const { snapshotEntries, snapshotFreeBytes, snapshotLogBytes } = this.#parts.options
    const { index, state: { length } } = this.#core.snapshot
    // The core has taken over a newer snapshot of the leader, whose state is not applied yet.
    if (this.#appliedIndex <= index) return false
    if (this.#bytesSinceSnapshot >= Math.max(length, snapshotLogBytes)) return true
    return this.#appliedIndex - index >= snapshotEntries
      && (length <= snapshotFreeBytes || this.#bytesSinceSnapshot >= length)
  }

  async #stageSnapshot(
    point: Pick<RaftSnapshot, 'index' | 'term' | 'configuration'>, encoding: Promise<Uint8Array> | Uint8Array,
  ): Promise<void> {
    const state = await encoding
    const snapshot: RaftSnapshot = { ...point, state, checksum: snapshotChecksum(state) }
    const written = await this.#retryWrite(async () => {
      if (this.#isSuperseded(snapshot)) return this.#storage.discard(snapshot)
      this.#staged = await this.#storage.stageSnapshot(snapshot)
    })
    if (!written) return
    // The snapshot takes effect between two writes of the log.
    void this.#run()
  }

  async #replaceSnapshot(): Promise<void> {
    const staged = this.#staged
    this.#staged = undefined
    if (!staged) return
    const { snapshot } = staged
    if (this.#isSuperseded(snapshot)) return this.#storage.discard(snapshot)
    const index = Math.max(this.#core.log.baseIndex, snapshot.index - this.#parts.options.trailingEntries)
    const base = { index, term: this.#termOf(index) }
    const written = await this.#retryWrite(async () => {
      if (this.#isSuperseded(snapshot)) return this.#storage.discard(snapshot)
      await this.#storage.writeSnapshot(staged, base)
    })
    if (written && !this.#isSuperseded(snapshot)) this.#core.compact(snapshot, index)
  }

  /**
   * True when the leader has sent a newer snapshot, which takes precedence. This may happen during any wait, and the
   * log of the core begins behind that snapshot then.
   */
  #isSuperseded(own: RaftSnapshot): boolean { return own.index <= this.#core.snapshot.index }

  readonly #pause = (): Promise<void> => new Promise(resolve => { this.#parts.clock.setImmediate(resolve) })

  #termOf(index: number): number {
    const term = this.#core.log.term(index)
    if (term === undefined) throw new Error(`raft: the log does not hold ${index}`)
    return term
  }

  /**
   * Repeats a write until it succeeds. Nothing is promised before it is on disk, so a node with a failing disk stops
   * answering, and does no other harm. Returns false when the node is stopping.
   */
  async #retryWrite(write: () => Promise<void>): Promise<boolean> {
    while (!this.#stopping.signal.aborted) {
      try {
        await write()
        this.#lastWriteFailure = null
        return !this.#stopping.signal.aborted
      } catch (error) {
        if (!(error instanceof StorageError)) throw error
        if (error.code === 'closed') this.#halt()
        if (this.#stopping.signal.aborted) return false
        this.#lastWriteFailure = error
        this.#repeated.error(error.code, { err: error }, 'the cluster metadata cannot be written; trying again')
        await sleep(this.#parts.clock, this.#parts.options.storageRetryMs, this.#stopping.signal)
      }
    }
    return false
  }

  #noteRole(): void {
    const { role, leader, term, configuration, ignoredLeader } = this.#core
    const now = [role, leader, term, configuration, String(this.#core.wentBack()), ignoredLeader]
    if (now.every((value, at) => value === this.#seen[at])) return
    this.#seen = now
    this.#gauges.term.set(term)
    const led = this.leads
    this.#gauges.leads.set(led ? 1 : 0)
    this.#gauges.voters.set(configuration.voters.length)
    if (led) this.#noteLeading(term)
    else for (const proposal of [...this.#proposals.values()]) proposal.settle({ kind: 'not-leader' })
    this.#parts.log.debug({ role, leader, term, configuration }, 'consensus role')
    this.#parts.onChange()
  }

  #ledTerm = 0
  #noteLeading(term: number): void {
    if (term === this.#ledTerm) return
    this.#ledTerm = term
    this.#elections.add()
    this.#parts.log.info({ term, voters: this.#core.configuration.voters }, 'this node leads the cluster metadata')
  }
}
