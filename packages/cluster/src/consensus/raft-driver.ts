/**
 * Does the consensus core's work: disk before promises, entries applied in order, snapshots, ticks. One per
 * node. All state that matters is in the core and the store; this holds who waits for what.
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

/** What the log drives. What it becomes follows from the entries alone. */
export interface ReplicatedStateMachine {
  /** @throws Error when the entry makes no sense: this node then stops, before its state differs from others */
  apply(entry: LogEntry): unknown
  /** The state after the last applied entry. */
  snapshot(pause: () => Promise<void>): Promise<Uint8Array> | Uint8Array
  /**
   * Starts anew from a snapshot; index 0 with no bytes is the empty state.
   * @param lastIndex end of the log behind the snapshot: entries up to it are not new
   */
  restore(snapshot: RaftSnapshot, lastIndex: number, pause: () => Promise<void>): Promise<void> | void
  /** Called after a batch of `apply`, and after `restore`. */
  settled(): void
}

export interface RaftDriverOptions {
  readonly raft: RaftOptions
  /** Milliseconds of one tick: with the default options, heartbeats every 200 ms and elections after 1 to 2 s. */
  readonly tickMs: number
  /** Applied entries between two snapshots, at least ... */
  readonly snapshotEntries: number
  /**
   * ... and when the last one was larger than this, entries that are as large together as it was: so what snapshots
   * cost for each entry does not grow with the state.
   */
  readonly snapshotFreeBytes: number
  /** Bytes of applied entries, above those of the last snapshot, after which one is taken however few they are. */
  readonly snapshotLogBytes: number
  /** Entries that stay in the log behind a snapshot, so that a follower that is briefly away needs none. */
  readonly trailingEntries: number
  readonly maxPendingProposals: number
  /** Milliseconds until a failed write is tried again. */
  readonly storageRetryMs: number
}

export const defaultRaftDriverOptions: RaftDriverOptions = {
  raft: defaultRaftOptions, tickMs: 100, snapshotEntries: 1000, snapshotFreeBytes: 1024 * 1024,
  snapshotLogBytes: 16 * 1024 * 1024, trailingEntries: 200, maxPendingProposals: 1024, storageRetryMs: 1000,
}

/** Entries that are applied in one turn of the event loop: a start may have tens of thousands to apply. */
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
  /** Role, leader or configuration may be different now. */
  readonly onChange: () => void
  /** A broken invariant: this node's consensus has stopped for good. */
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
  /** Work was taken from the core and is not, or not surely, on disk. */
  #unsaved = false
  /** Payloads of the entries applied since the state that the last snapshot is of. */
  #bytesSinceSnapshot = 0
  /** A snapshot is being encoded and written. */
  #staging: Promise<void> | undefined
  #staged: StagedSnapshot | undefined
  #seen = ''
  #lastWriteFailure: StorageError | null = null
  readonly #repeated: RepeatedLines
  /** The commit index that this node tries to reach, and since when; null: it has applied everything it heard of. */
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

  /** Reads the store, brings the state machine to what was committed, and starts to tick. */
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
   * Why the disk does not take what is to be written now; null: it does. Meanwhile this node applies nothing and tells
   * nobody anything.
   */
  get writeFailure(): StorageError | null { return this.#lastWriteFailure }
  get leads(): boolean { return this.#core.role === 'leader' }
  get term(): number { return this.#core.term }
  get applied(): number { return this.#appliedIndex }
  get configuration(): VotingConfiguration { return this.#core.configuration }

  /** @param doubtful the sender's disk is an older copy of the one that it had, or has another log */
  step(message: RaftMessage, doubtful = false): void {
    if (this.#stopping.signal.aborted) return
    this.#guarded(() => this.#core.step(message, doubtful))
  }

  /**
   * How long this node has lacked something that a leader told it was committed, in milliseconds; 0: it lacks nothing.
   */
  get lagMs(): number { return this.#lag === null ? 0 : this.#parts.clock.monotonic() - this.#lag.sinceMs }

  /** Entries that a leader has committed and this node has not applied. */
  get lagEntries(): number { return Math.max(0, this.#core.leaderCommit - this.#appliedIndex) }

  /** Who votes and who learns by what is known as committed. */
  get committedConfiguration(): VotingConfiguration { return this.#core.configurationAt(this.#core.commit) }

  /** A node that claims to lead and is not followed, because its disk is in doubt; null: there is none. */
  get ignoredLeader(): string | null { return this.#core.ignoredLeader }

  /** Leading: members whose disks are older copies of those that they had in this term. */
  wentBack(): readonly string[] { return this.#core.wentBack() }

  /**
   * Proposes a command; `not-leader`: this node does not lead, or stopped leading before the outcome was known.
   * @throws ReplicaError `overloaded` when too many wait
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

  /** Starts a change of membership. @throws Error when it makes no sense */
  changeConfiguration(change: ConfigurationChange): Refusal | 'started' {
    const placed = this.#core.proposeConfiguration(change)
    if (typeof placed === 'string') return placed
    void this.#run()
    return 'started'
  }

  /**
   * The index to which a read must wait to see all that was decided before now; null: this node does not (surely) lead.
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

  /** Resolves when this node has applied `index`; false: not within `timeoutMs`. */
  waitApplied(index: number, timeoutMs: number): Promise<boolean> {
    return this.#appliedWaiters.wait(() => this.#appliedIndex >= index, timeoutMs)
  }

  /** Leading: resolves when all `nodes()` (asked again each time) know that `index` is committed. */
  waitSpread(index: number, nodes: () => readonly string[], timeoutMs: number): Promise<boolean> {
    return this.#spreadWaiters.wait(
      () => !this.leads || nodes().every(node => this.#core.knownCommitOf(node) >= index), timeoutMs,
    )
  }

  /** Looks again whether what `waitSpread` callers wait for is there (links changed). */
  checkSpread(): void { this.#spreadWaiters.check() }

  isActive(node: string): boolean { return this.#core.isActive(node) }
  caughtUp(node: string): boolean { return this.#core.caughtUp(node) }
  matchOf(node: string): number { return this.#core.matchOf(node) }

  /** Ends ticks and waits; what was promised is on disk already. */
  async stop(): Promise<void> {
    if (this.#stopping.signal.aborted) return this.#pump
    this.#halt()
    await this.#pump
    await this.#staging
    await this.#storage.idle()
    // What comes after something that was not saved must not be saved either: it would leave a gap.
    if (this.#unsaved) return
    const { persist } = this.#core.takeLastWork()
    if (!persist) return
    try {
      await this.#storage.write(persist)
    } catch (error) {
      this.#parts.log.warn(
        { err: error }, 'the newest cluster metadata was not saved at the end; it will be fetched again',
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

  /** Works until nothing is left to do; one at a time. */
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

  /** Begins to encode and write a snapshot when one is due. The log goes on meanwhile. */
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
    if (this.#bytesSinceSnapshot >= Math.max(length, snapshotLogBytes)) return true
    return this.#appliedIndex - index >= snapshotEntries
      && (length <= snapshotFreeBytes || this.#bytesSinceSnapshot >= length)
  }

  async #stageSnapshot(
    point: Pick<RaftSnapshot, 'index' | 'term' | 'configuration'>, encoding: Promise<Uint8Array> | Uint8Array,
  ): Promise<void> {
    const state = await encoding
    const snapshot: RaftSnapshot = { ...point, state, checksum: snapshotChecksum(state) }
    if (!await this.#retryWrite(async () => { this.#staged = await this.#storage.stageSnapshot(snapshot) })) return
    // It takes effect between two writes of the log.
    void this.#run()
  }

  async #replaceSnapshot(): Promise<void> {
    const staged = this.#staged
    this.#staged = undefined
    // One that the leader has sent meanwhile is newer.
    if (!staged) return
    if (staged.snapshot.index <= this.#core.snapshot.index) return this.#storage.discard(staged)
    const baseIndex = Math.max(this.#core.log.baseIndex, staged.snapshot.index - this.#parts.options.trailingEntries)
    if (!await this.#retryWrite(() =>
      this.#storage.writeSnapshot(staged, { index: baseIndex, term: this.#termOf(baseIndex) }))) {
      return
    }
    this.#core.compact(staged.snapshot, baseIndex)
  }

  readonly #pause = (): Promise<void> => new Promise(resolve => { this.#parts.clock.setImmediate(resolve) })

  #termOf(index: number): number {
    const term = this.#core.log.term(index)
    if (term === undefined) throw new Error(`raft: the log does not hold ${index}`)
    return term
  }

  /** Nothing is promised before the disk has it, so a failing disk only makes this node silent. False: stopping. */
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
    const { role, leader, term, configuration } = this.#core
    const now = JSON.stringify([role, leader, term, configuration, this.#core.wentBack(), this.#core.ignoredLeader])
    if (now === this.#seen) return
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
