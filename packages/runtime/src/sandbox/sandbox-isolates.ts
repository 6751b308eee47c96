import type { Clock, Timer } from '../clock/clock.ts'
import type { Log } from '../log/log.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { CallHistory, type Lane } from './call-history.ts'
import { CallQueue, type PendingCall } from './call-queue.ts'
import { exceededLimit, type ChildMoment } from './child-limits.ts'
import { shortMessage } from './failure-text.ts'
import { anticipationMs, FairTurns } from './fair-turns.ts'
import { SandboxChild, type ChildEnd, type ChildReply } from './child/sandbox-child.ts'
import type { CallKind, CallReply, LoadFailure } from './child/messages.ts'
import type { ItemsKind } from './functions/environment.ts'
import { boundedLines, FunctionLog } from './function-log.ts'
import { itemsText } from './functions/items-text.ts'
import { readCallOutcomes, readMapOutcomes, type ReadOutcomes } from './functions/outcome-text.ts'
import { respondText } from './functions/respond-text.ts'
import { SandboxError } from './sandbox.ts'
import type {
  CallOutcome, JsonText, MapOutcome, RespondArguments, Sandbox, SandboxFunction, SandboxLimits,
} from './sandbox.ts'
import { childMetrics } from './sandbox-metrics.ts'

/** How often in milliseconds time and memory of the children are checked while one of them works. */
const watchMs = 25
/**
 * When a check comes this many milliseconds late, the node was suspended or blocked. Children may have answered, or
 * have been suspended too, so their times begin anew.
 */
const lateMs = 1000
/** How many milliseconds after a failed start the next one follows, while other children work. */
const restartMs = 1000
/** The share of `callMs` within which a message is answered when it is quick. */
const quickShare = 5

export interface IsolateSandboxOptions {
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly limits: SandboxLimits
  /** The module of isolated-vm, by default `isolated-vm`. */
  readonly library?: string
}

/** A child of the pool. */
interface PoolChild {
  readonly child: SandboxChild
  state: ChildMoment['state']
  /** Monotonic time at which the state began, or the node ran again after it was suspended. */
  since: number
  /**
   * The CPU time of the process in milliseconds at the first and at the last check in this state, and the monotonic
   * time of the check that saw it grow last. Undefined before the first check.
   */
  cpu: { readonly firstMs: number; readonly lastMs: number; readonly grewAt: number } | undefined
  /** The calls of the message that the child works on, all of one database. Empty unless it is busy. */
  calls: readonly PendingCall[]
}

/**
 * Runs functions in child processes, each with isolates of isolated-vm. Children are started when calls wait for them.
 * A message contains calls of one database only, so that ending a child fails no call of another database. The first
 * call of a function in a child is the only one of its message. A call whose child ended runs once more, as the only
 * call of its message. When that ends a child too, the call is the cause, unless something else than this node killed
 * the child.
 *
 * Functions of several databases may occupy all children up to the time limit. When this happens while a database waits
 * whose messages are quick, the pool gets one child more, and the databases that are not quick leave one child to the
 * others from then on.
 *
 * Calls of suspect functions, which were the cause for which a child ended lately, run one at a time, in one child
 * more, and their databases share its time. So a function that does not end delays other calls only when it is called
 * for the first time in a minute.
 */
export class IsolateSandbox implements Sandbox {
  readonly #options: IsolateSandboxOptions
  readonly #queue: CallQueue
  readonly #children = new Set<PoolChild>()
  readonly #metrics: ReturnType<typeof childMetrics>
  readonly #functionLog: FunctionLog
  readonly #history: CallHistory
  /** The turns of databases with suspect calls. */
  readonly #suspectTurns = new FairTurns()
  /** Ends the wait for the database whose turn would be next. */
  #anticipation: Timer | undefined
  /** True when the pool has one child more, so that databases with quick messages find a child. */
  #hasReserve = false
  #dispatchPlanned = false
  /** True while a timer of `#watchChildren` runs. */
  #watching = false
  /** Ends the children. It runs only while all are idle and not watched. */
  #idleTimer: Timer | undefined
  /** Monotonic time before which no child is started beside others, because the last start failed. */
  #nextStart = 0
  /** True when a child has loaded isolated-vm. */
  #supported = false
  /** Why no call can run, once that is known. */
  #refusal: SandboxError | undefined

  constructor(options: IsolateSandboxOptions) {
    this.#options = options
    this.#queue = new CallQueue(options.limits)
    this.#metrics = childMetrics(options.metrics)
    this.#functionLog = new FunctionLog(options.log, options.clock)
    this.#history = new CallHistory(options.clock, options.limits.callMs / quickShare)
  }

  async compile(called: SandboxFunction): Promise<void> {
    await this.#add(called, 'compile', 0, Buffer.alloc(0))
  }

  async map(
    called: SandboxFunction, documents: readonly JsonText[], onLog?: (line: string) => void,
  ): Promise<readonly MapOutcome[]> {
    if (documents.length === 0) return []
    const text = await this.#addItems(called, 'map', documents)
    return this.#read(called, () => readMapOutcomes(text, documents.length), onLog)
  }

  async call(called: SandboxFunction, argumentLists: readonly JsonText[]): Promise<readonly CallOutcome[]> {
    if (argumentLists.length === 0) return []
    const text = await this.#addItems(called, 'call', argumentLists)
    return this.#read(called, () => readCallOutcomes(text, argumentLists.length))
  }

  async filter(
    called: SandboxFunction, request: JsonText, documents: readonly JsonText[],
  ): Promise<readonly CallOutcome[]> {
    if (documents.length === 0) return []
    const text = await this.#addItems(called, 'filter', documents, [request])
    return this.#read(called, () => readCallOutcomes(text, documents.length))
  }

  async respond(called: SandboxFunction, given: RespondArguments): Promise<CallOutcome> {
    const text = await this.#add(called, 'respond', 1, Buffer.from(respondText(given)))
    return this.#read(called, () => readCallOutcomes(text, 1))[0] as CallOutcome
  }

  /** Ends all children. Calls that wait or run reject with `closed`. */
  close(): void {
    this.#idleTimer?.cancel()
    this.#anticipation?.cancel()
    this.#refuse(new SandboxError('closed', 'The sandbox is closed'))
    for (const member of this.#children) this.#kill(member, 'closed')
  }

  /** @param shared values for all items, which precede them */
  async #addItems(
    called: SandboxFunction, kind: ItemsKind, items: readonly JsonText[], shared: readonly JsonText[] = [],
  ): Promise<string> {
    const { callItemsMax } = this.#options.limits
    if (this.#refusal !== undefined) throw this.#refusal
    if (items.length > callItemsMax) {
      throw new SandboxError('too_large', `The call has ${items.length} items; the limit is ${callItemsMax}`)
    }
    return this.#add(called, kind, items.length, itemsText([...shared, ...items]))
  }

  /** @param items the items of `Environment.run`, as UTF-8 */
  #add(called: SandboxFunction, kind: CallKind, count: number, items: Buffer): Promise<string> {
    return new Promise((resolve, reject) => {
      if (this.#refusal !== undefined) throw this.#refusal
      const isQuick = this.#history.isQuick(called.database)
      const lane = this.#history.laneOf(called)
      this.#queue.add({ called, kind, count, items, lane, retried: false, resolve, reject }, isQuick)
      this.#planDispatch()
    })
  }

  #read<Outcome>(
    called: SandboxFunction, read: () => ReadOutcomes<Outcome>, onLog?: (line: string) => void,
  ): readonly Outcome[] {
    try {
      const { outcomes, logged } = read()
      const lines = boundedLines(logged)
      if (onLog === undefined) this.#functionLog.write(called, lines)
      else for (const line of lines) onLog(line)
      return outcomes
    } catch (error) {
      throw new SandboxError('crashed', `The outcomes cannot be read: ${(error as Error).message}`)
    }
  }

  /** Sends waiting calls at the end of this turn, so that the calls of one turn share messages. */
  #planDispatch(): void {
    if (this.#dispatchPlanned) return
    this.#dispatchPlanned = true
    this.#options.clock.setImmediate(() => {
      this.#dispatchPlanned = false
      this.#dispatch()
    })
  }

  #dispatch(): void {
    if (this.#history.forgetSuspects()) this.#queue.release(called => this.#history.laneOf(called))
    const share = Math.max(1, Math.floor(this.#options.limits.childrenMax / 2))
    const databases = this.#history.inOrder(this.#queue.databases('ordinary'))
    this.#hasReserve ||= this.#areAllSlow()
      && databases.some(database => this.#history.isQuick(database) && this.#usedBy(database) < share)
    for (const database of databases) {
      for (let used = this.#usedBy(database); used < share && this.#sendNext('ordinary', database); used++);
    }
    this.#sendSuspect()
    this.#metrics.waiting.set(this.#queue.waiting)
  }

  #sendSuspect(): void {
    const { clock } = this.#options
    const databases = this.#queue.databases('suspect')
    const next = this.#suspectTurns.next(databases, clock.monotonic())
    if (next !== undefined) this.#sendNext('suspect', next)
    else if (databases.length > 0) {
      this.#anticipation?.cancel()
      this.#anticipation = clock.setTimer(anticipationMs, () => this.#planDispatch())
    }
  }

  /** Sends the next message of a database. Returns false when no call of it waits, or no child can take it now. */
  #sendNext(lane: Lane, database: string): boolean {
    const next = this.#queue.peek(lane, database)
    if (next === undefined || !this.#hasPlace(lane, database)) return false
    const idle = this.#idleFor(lane, next.called)
    if (idle === undefined) {
      // Calls of other functions wait for a child that works. Such a child may never come back for these.
      if (!this.#start() && lane === 'suspect') this.#failAll('suspect')
      return false
    }
    if (lane === 'ordinary') this.#history.sent(database)
    else this.#suspectTurns.began(database, this.#options.clock.monotonic())
    // A function that does not end usually does so in its first call, which then ends the child of no other call.
    const isAlone = ({ called, retried }: PendingCall): boolean =>
      retried || lane === 'suspect' || !idle.child.hasCalled(called)
    this.#change(idle, 'busy', this.#queue.take(lane, database, isAlone))
    idle.child.send(idle.calls)
    return true
  }

  /** Returns whether one child more may work on a message of this lane and database. */
  #hasPlace(lane: Lane, database: string): boolean {
    const working = this.#working(lane)
    if (lane === 'suspect') return working.length === 0
    if (working.length >= this.#places) return false
    const isQuick = (name: string): boolean => this.#history.isQuick(name)
    const others = working.filter(({ calls }) => !isQuick(calls[0]!.called.database))
    return isQuick(database) || others.length < this.#options.limits.childrenMax
  }

  /** The number of children that may work on ordinary calls. */
  get #places(): number {
    return this.#options.limits.childrenMax + (this.#hasReserve ? 1 : 0)
  }

  /** Returns true when all children have worked on one message for longer than a quick one takes. */
  #areAllSlow(): boolean {
    const { clock, limits } = this.#options
    const latest = clock.monotonic() - limits.callMs / quickShare
    const slow = this.#working('ordinary').filter(({ state, since }) => state === 'busy' && since < latest)
    return slow.length >= limits.childrenMax
  }

  #working(lane: Lane): PoolChild[] {
    return [...this.#children].filter(({ calls }) => calls[0]?.lane === lane)
  }

  #usedBy(database: string): number {
    return this.#working('ordinary').filter(({ calls }) => calls[0]!.called.database === database).length
  }

  #idleFor(lane: Lane, called: SandboxFunction): PoolChild | undefined {
    const idle = [...this.#children].filter(({ state }) => state === 'idle')
    // The last idle child is left to ordinary calls, which would have to wait until another one has started.
    if (lane === 'suspect' && idle.length === 1 && this.#children.size <= this.#places) return undefined
    // A suspect call probably ends its child, with all isolates in it.
    if (lane === 'suspect') return idle.toSorted((a, b) => a.child.isolateCount - b.child.isolateCount)[0]
    return idle.find(({ child }) => child.knows(called)) ?? idle[0]
  }

  /** Starts a child for a message that has a place. Returns false when none is starting now. */
  #start(): boolean {
    const { clock, limits, library = 'isolated-vm' } = this.#options
    const members = [...this.#children]
    if (members.some(({ state }) => state === 'starting')) return true
    if (members.length > 0 && clock.monotonic() < this.#nextStart) return false
    const member: PoolChild = {
      child: new SandboxChild(library, limits, {
        onReady: failure => this.#ready(member, failure),
        onReplies: replies => this.#answer(member, replies),
        onEnd: end => this.#ended(member, end),
      }),
      state: 'starting',
      since: clock.monotonic(),
      cpu: undefined,
      calls: [],
    }
    this.#children.add(member)
    this.#metrics.children.set(this.#children.size)
    this.#watchChildren()
    return true
  }

  #ready(member: PoolChild, failure: LoadFailure | null): void {
    if (member.state !== 'starting') return
    if (failure !== null) return this.#failLoad(member, failure)
    this.#supported = true
    this.#change(member, 'idle', [])
    this.#planDispatch()
  }

  #failLoad(member: PoolChild, { message, isFinal }: LoadFailure): void {
    const reason = shortMessage(message)
    // A child that cannot load what another one could is short of something that may come back.
    if (this.#supported || !isFinal) {
      this.#options.log.warn({ reason }, 'A process for functions of design documents could not load isolated-vm')
      return this.#kill(member, 'crashed')
    }
    this.#refuse(new SandboxError('unsupported',
      `This machine runs no functions of design documents, because isolated-vm cannot be loaded: ${reason}`))
    this.#kill(member, 'closed')
  }

  #answer(member: PoolChild, replies: readonly ChildReply[]): void {
    if (member.state !== 'busy') return
    const { calls, since } = member
    if (replies.length !== calls.length) return this.#kill(member, 'crashed')
    const { called: { database }, lane } = calls[0]!
    const now = this.#options.clock.monotonic()
    this.#history.answered(database, now - since)
    if (lane === 'suspect') this.#suspectTurns.used(database, now - since, now)
    this.#change(member, 'idle', [])
    this.#putBack(calls.filter((call, index) => replies[index]?.reply.status === 'postponed'))
    for (const [index, call] of calls.entries()) {
      const { reply, text } = replies[index] as ChildReply
      if (reply.status !== 'postponed') this.#settle(call, reply, text)
    }
    this.#planDispatch()
  }

  #settle(call: PendingCall, reply: CallReply, text: string): void {
    this.#queue.settle(call)
    if (reply.status === 'done') call.resolve(text)
    else call.reject(this.#errorOf(reply))
  }

  #errorOf(reply: CallReply): SandboxError {
    const { heapMiB, resultBytesMax } = this.#options.limits
    switch (reply.status) {
      case 'compilation':
        return new SandboxError('compilation', shortMessage(reply.message), {
          line: reply.line, column: reply.column, module: null,
        })
      case 'memory': return new SandboxError('memory', `The function used more than ${heapMiB} MiB of memory`)
      case 'too_large':
        return new SandboxError('too_large', `The results have more than ${resultBytesMax} bytes`)
      case 'failed': return new SandboxError('crashed', `The call failed: ${shortMessage(reply.message)}`)
      default: return new SandboxError('crashed', `The call was not run: ${reply.status}`)
    }
  }

  #ended(member: PoolChild, end: ChildEnd): void {
    const { state, calls, since } = member
    if (calls[0]?.lane === 'suspect') {
      const now = this.#options.clock.monotonic()
      this.#suspectTurns.used(calls[0].called.database, now - since, now)
    }
    this.#children.delete(member)
    this.#metrics.children.set(this.#children.size)
    if (end !== 'closed') this.#report(member, end)
    if (end !== 'closed' && calls.length > 0) this.#history.endedChild(calls[0]!.called.database)
    if (state === 'starting' && this.#refusal === undefined) this.#failStart()
    const again: PendingCall[] = []
    for (const call of calls) {
      const isCause = call.retried || (calls.length === 1 && end === 'timeout')
      if (this.#refusal === undefined && !isCause) {
        call.retried = true
        again.push(call)
      } else {
        if (isCause && end !== 'closed' && end !== 'killed') {
          this.#history.endedChildBy(call.called)
          this.#queue.suspect(call.called, (refused, error) => refused.reject(error))
        }
        this.#queue.settle(call)
        call.reject(this.#refusal ?? this.#endError(end))
      }
    }
    this.#putBack(again)
    this.#planDispatch()
  }

  /** Their functions may have become suspect meanwhile. */
  #putBack(calls: readonly PendingCall[]): void {
    this.#queue.putBack(calls, called => this.#history.laneOf(called))
  }

  #endError(end: ChildEnd): SandboxError {
    const { callMs, residentMiB } = this.#options.limits
    if (end === 'timeout') return new SandboxError('timeout', `The function took longer than ${callMs} ms`)
    if (end === 'memory') return new SandboxError('memory', `The function's process used more than ${residentMiB} MiB`)
    if (end === 'killed') {
      return new SandboxError('overloaded', 'The system ended the process of the function. Its memory may be short')
    }
    return new SandboxError('crashed', 'The function ended its process')
  }

  /** Without children no call can run. The next calls try to start one again. */
  #failStart(): void {
    this.#nextStart = this.#options.clock.monotonic() + restartMs
    this.#hasReserve = false
    if (this.#children.size === 0) this.#failAll('ordinary', 'suspect')
  }

  #failAll(...lanes: readonly Lane[]): void {
    for (const call of this.#queue.takeAll(...lanes)) {
      this.#queue.settle(call)
      call.reject(new SandboxError('overloaded', 'A process for functions of design documents could not be started'))
    }
  }

  #refuse(error: SandboxError): void {
    this.#refusal ??= error
    for (const call of this.#queue.takeAll('ordinary', 'suspect')) {
      this.#queue.settle(call)
      call.reject(this.#refusal)
    }
  }

  #change(member: PoolChild, state: PoolChild['state'], calls: readonly PendingCall[]): void {
    member.state = state
    member.calls = calls
    member.cpu = undefined
    member.since = this.#options.clock.monotonic()
    if (state === 'busy') this.#watchChildren()
  }

  #kill(member: PoolChild, end: ChildEnd): void {
    if (member.state !== 'starting') member.state = 'ending'
    member.child.kill(end)
  }

  #report(member: PoolChild, end: ChildEnd): void {
    this.#metrics.ended.add(1, { reason: end })
    const designDocuments = new Set(member.calls.map(({ called }) => called.designDocument))
    this.#options.log.warn(
      { reason: end, database: member.calls[0]?.called.database, designDocuments: [...designDocuments] },
      'A process that ran functions of design documents ended',
    )
  }

  /** Checks the children as long as one of them works, and once more afterwards. */
  #watchChildren(): void {
    if (this.#watching) return
    this.#watching = true
    this.#idleTimer?.cancel()
    const { clock } = this.#options
    const latest = clock.monotonic() + watchMs + lateMs
    // Answers that have arrived are read before an immediate runs, but after timers.
    clock.setTimer(watchMs, () => clock.setImmediate(() => this.#checkAll(clock.monotonic() > latest)))
  }

  #checkAll(isLate: boolean): void {
    const { clock, limits } = this.#options
    this.#watching = false
    // No call can run any more, and the children have been killed.
    if (this.#refusal !== undefined) return
    const works = [...this.#children].some(({ state }) => state !== 'idle')
    for (const member of this.#children) this.#check(member, isLate)
    // The children may have become slow.
    if (this.#queue.waiting > 0) this.#planDispatch()
    if (works) return this.#watchChildren()
    this.#idleTimer = clock.setTimer(limits.idleMs, () => {
      this.#hasReserve = false
      for (const member of this.#children) this.#kill(member, 'closed')
    })
  }

  #check(member: PoolChild, isLate: boolean): void {
    const now = this.#options.clock.monotonic()
    if (isLate) member.since = now
    const usage = member.child.usage()
    if (usage !== null && (isLate || usage.cpuMs !== member.cpu?.lastMs)) {
      member.cpu = { firstMs: member.cpu?.firstMs ?? usage.cpuMs, lastMs: usage.cpuMs, grewAt: now }
    }
    const { state, since, cpu } = member
    const cpuMs = usage === null || cpu === undefined ? null : usage.cpuMs - cpu.firstMs
    const sleptMs = now - (cpu?.grewAt ?? now)
    const end = exceededLimit({ state, ageMs: now - since, usage, cpuMs, sleptMs }, this.#options.limits)
    if (end !== null) this.#kill(member, end)
  }
}
