import { ReplicaError } from '@sectional/core'
import type { CallContext, ShardReplica } from '@sectional/core'
import { defaultLimits } from '@sectional/server'
import type { SimulatedNode } from '../world/simulated-node.ts'
import type { World } from '../world/world.ts'
import { Exchange, pieceOf, plannedOutcome, requestOf } from './exchange.ts'
import type { ExchangeOutcome, ExchangePlan } from './exchange.ts'
import { RoundTrips } from './round-trips.ts'
import { contentHash, exchangeShard, ServedExchanges } from './served-exchanges.ts'
import { WatchedNetwork } from './watched-network.ts'

/** How much later than its timeout an exchange may end, and how much earlier, because clocks differ in speed. */
const lateFactor = 1.03
const lateMs = 500
const earlyFactor = 0.97
/**
 * Milliseconds after which the served end must be over when the calling end is: a message is on its way for ten seconds
 * at most, and a link on which nothing arrives is closed before.
 */
const servedOverMs = 30_000
/** The source of an upload breaks off with this. */
const brokenOff = new Error('the source of the exchange broke off')

/**
 * `calm`: nothing disturbs the exchange, so that it must end as planned; `crowded`: it may be refused because too many
 * are open; `stalled`: one end waits for so long that the other one must end the exchange.
 */
export type ExchangeMode = 'calm' | 'disturbed' | 'crowded' | 'stalled'


/** Outcomes that faults, and nodes that stop, may cause. */
const disturbed: ReadonlySet<ExchangeOutcome> = new Set(['unreachable', 'timeout', 'closed'])

/**
 * Calls, scans and uploads between the nodes of a world over their links, whose two ends are both known. What one end
 * is told must agree with what the other end did.
 */
export class Exchanges {
  readonly #world: World
  readonly #networks = new Map<SimulatedNode, WatchedNetwork>()
  readonly #exchanges = new Map<string, Exchange>()
  readonly #served: ServedExchanges
  readonly #trips: RoundTrips
  #last = 0
  #linksLost = 0
  /** Whether somebody on the path alters frames, so that nodes find the protocol broken. */
  tampered = false

  /** Call this before the nodes of the world start. */
  constructor(world: World) {
    this.#world = world
    const report = (rule: string, text: string): void => world.fail('safety', rule, text)
    this.#served = new ServedExchanges({ exchange: id => this.#exchanges.get(id), report })
    this.#trips = new RoundTrips(world, node => this.networkOf(node))
    world.observers.add({ network: (node, network) => {
      const watched = new WatchedNetwork({
        node, network, report, nowMs: () => world.nowMs, trips: this.#trips,
        openEnds: watching => this.#runs(watching) ? world.hub.endsOf(node.host).length : 0,
        own: (at, shard, from) => shard.incarnation === exchangeShard.incarnation
          ? this.#served.replica(at, from)
          : undefined,
      })
      this.#networks.set(node, watched)
      network.onChange((_, up) => { if (!up) this.#linksLost++ })
      return watched
    } })
    world.onLog.add((node, level, text) => {
      if (!this.tampered && level === 'error' && text.startsWith('a peer broke the protocol')) {
        report('peers-keep-protocol', `${node.name}: ${text}`)
      }
    })
  }

  get trips(): RoundTrips { return this.#trips }

  get count(): number { return this.#exchanges.size }

  /** Returns the links of the newest process of a node. */
  networkOf(node: SimulatedNode): WatchedNetwork { return this.#networks.get(node)! }

  /** The number of links that nodes have lost so far. */
  get linksLost(): number { return this.#linksLost }

  /** Returns whether the links of a node lead to another one. */
  linked(node: SimulatedNode, name: string): boolean {
    return node.running && this.networkOf(node).connected().some(peer => peer.node === name)
  }

  /** Returns whether a node is a member that can begin exchanges. */
  canBegin(node: SimulatedNode): boolean {
    return node.inside !== undefined && !node.paused && !node.stopping && this.networkOf(node).clusterId !== null
  }

  /**
   * Makes one exchange. Resolves when it has ended at the calling end, or never when that process ends.
   */
  async make(from: SimulatedNode, to: SimulatedNode, plan: ExchangePlan, mode: ExchangeMode): Promise<Exchange> {
    const caller = this.networkOf(from)
    const id = `x${++this.#last}`
    const exchange = new Exchange({ id, plan, from, to, caller, startedMs: this.#world.nowMs })
    this.#exchanges.set(id, exchange)
    const aborting = new AbortController()
    if (plan.abortsAfterMs === 0) aborting.abort()
    const abort = plan.abortsAfterMs === Infinity ? undefined
      : from.clock.setTimer(plan.abortsAfterMs, () => aborting.abort())
    const outcome = await this.#outcomeOf(exchange, aborting.signal)
    abort?.cancel()
    exchange.outcome = outcome
    this.#judge(exchange, mode)
    this.#world.queue.schedule(servedOverMs, 'end of an exchange', this.#overCheck(exchange))
    return exchange
  }

  async #outcomeOf(exchange: Exchange, signal: AbortSignal): Promise<ExchangeOutcome> {
    const { plan: { kind, timeoutMs }, to } = exchange
    const replica = exchange.caller.replica(to.name, exchangeShard)
    const context = { timeoutMs, signal, requestId: exchange.id }
    try {
      switch (kind) {
        case 'call': return await this.#call(exchange, replica, context)
        case 'wait': return await this.#wait(exchange, replica, context)
        case 'scan': return await this.#scan(exchange, replica, context)
        default: return await this.#upload(exchange, replica, context)
      }
    } catch (error) {
      if (error === brokenOff) return 'broken'
      if (!(error instanceof ReplicaError)) throw error
      exchange.nothingDone = error.nothingDone
      this.#world.say(`${exchange} ends: ${error.code} ${error.message}${error.nothingDone ? ' (not done)' : ''}`)
      return error.code
    }
  }

  async #call(exchange: Exchange, replica: ShardReplica, context: CallContext): Promise<ExchangeOutcome> {
    const request = { id: exchange.id, revision: 7, body: requestOf(exchange), mustExist: false }
    const reply = await this.#inTime(exchange, replica.updateLocalDocument(request, context))
    const document = reply.kind === 'updated' ? reply.document : undefined
    if (document?.id !== exchange.id || !Buffer.from(document.body ?? []).equals(pieceOf(exchange, 0))) {
      this.#report('exchanges-match', `${exchange} got the answer to another call`)
    }
    return 'answered'
  }

  async #wait(exchange: Exchange, replica: ShardReplica, context: CallContext): Promise<ExchangeOutcome> {
    const seen = { history: exchange.id, sequence: 3 }
    const reply = await this.#inTime(exchange, replica.waitForChange(seen, context))
    if (reply.history !== exchange.id || reply.sequence !== 4) {
      this.#report('exchanges-match', `${exchange} got the answer to another call`)
    }
    return 'answered'
  }

  async #scan(exchange: Exchange, replica: ShardReplica, context: CallContext): Promise<ExchangeOutcome> {
    const { plan, from } = exchange
    const scan = { start: { id: exchange.id, inclusive: true }, descending: false }
    const pages = replica.scanLocalDocuments(scan, context)[Symbol.asyncIterator]()
    for (;;) {
      if (exchange.pieces >= plan.leavesAfter) {
        await pages.return?.()
        return 'left'
      }
      exchange.movedMs = this.#world.nowMs
      const { done, value } = await this.#inTime(exchange, pages.next())
      if (done === true) break
      for (const row of value) this.#takeRow(exchange, row.id, row.body)
      if (plan.ownMs > 0) await paused(from, plan.ownMs)
    }
    if (exchange.pieces < plan.pieces || plan.fails !== null) {
      this.#report('streams-complete', `${exchange} ended like a complete one after ${exchange.pieces} pages`)
    }
    return 'answered'
  }

  #takeRow(exchange: Exchange, id: string, body: Uint8Array | null): void {
    const expected = pieceOf(exchange, exchange.pieces)
    if (id !== `${exchange.id}:${exchange.pieces}` || !Buffer.from(body ?? []).equals(expected)) {
      this.#report('streams-complete', `${exchange} got ${id} after ${exchange.pieces} pages`)
    }
    exchange.pieces++
  }

  async #upload(exchange: Exchange, replica: ShardReplica, context: CallContext): Promise<ExchangeOutcome> {
    const reply = await replica.blobs.writeBlob(this.#source(exchange), context)
    if (!exchange.complete || reply.hash !== contentHash(exchange)) {
      this.#report('streams-complete', `${exchange} was confirmed after ${exchange.pieces} pieces`)
    }
    return 'answered'
  }

  async *#source(exchange: Exchange): AsyncGenerator<Uint8Array> {
    const { plan, from } = exchange
    for (let index = 0; index < plan.pieces; index++) {
      if (index >= plan.leavesAfter) throw brokenOff
      const piece = pieceOf(exchange, index)
      const ahead = index * piece.length - exchange.takenBytes
      if (ahead > defaultLimits.uploadBytes + 2 * piece.length) {
        this.#report('windows-kept', `${exchange}: ${ahead} bytes were sent ahead of the receiver`)
      }
      exchange.pieces++
      const taken = this.#watch(exchange)
      yield piece
      taken()
      if (plan.ownMs > 0) await paused(from, plan.ownMs)
    }
    if (plan.leavesAfter <= plan.pieces) throw brokenOff
    exchange.complete = true
    this.#watch(exchange)
  }

  /** Demands that the promise settles within the timeout of the exchange. */
  async #inTime<Result>(exchange: Exchange, promise: Promise<Result>): Promise<Result> {
    const over = this.#watch(exchange)
    try {
      return await promise
    } finally {
      over()
    }
  }

  /** Demands that the returned function is called, or that the exchange ends, within its timeout. */
  #watch(exchange: Exchange): () => void {
    const { caller, from, plan: { timeoutMs } } = exchange
    const { pauses } = from
    exchange.movedMs = this.#world.nowMs
    const timer = this.#world.queue.schedule(timeoutMs * lateFactor + lateMs, 'deadline of an exchange', () => {
      if (exchange.outcome !== undefined || !this.#runs(caller) || from.pauses !== pauses || caller.stopped) return
      this.#report('calls-in-time', `${exchange} did not end within ${timeoutMs} ms`)
    })
    return () => timer.cancel()
  }

  #judge(exchange: Exchange, mode: ExchangeMode): void {
    const { outcome, plan, served, startedMs, movedMs } = exchange
    const expected = mode === 'stalled' ? 'timeout' : plannedOutcome(plan)
    if (exchange.nothingDone && served) {
      this.#report('nothing-done', `${exchange} was reported as not done (${outcome}), but it was served`)
    }
    if (plan.abortsAfterMs === 0 && served) {
      this.#report('calls-end-as-planned', `${exchange} was served although it was aborted before it began`)
    }
    // After a pause, the served end may have ended a stream because it heard nothing for too long.
    const early = this.#world.nowMs - movedMs < plan.timeoutMs * earlyFactor
    if (outcome === 'timeout' && early && mode !== 'stalled' && !exchange.wasPaused) {
      this.#report('calls-in-time', `${exchange} timed out after ${this.#world.nowMs - startedMs} ms`)
    }
    if (outcome === expected || (mode === 'disturbed' && disturbed.has(outcome!))) return
    if (mode === 'crowded' && outcome === 'overloaded') return
    if (outcome === 'cancelled' && plan.abortsAfterMs < Infinity) return
    this.#report('calls-end-as-planned', `${exchange} ended as ${outcome} instead of ${expected}`)
  }

  /** Returns a function that demands that the served end is over, unless its process has been paused meanwhile. */
  #overCheck(exchange: Exchange): () => void {
    const { to } = exchange
    const { pauses } = to
    const paused = to.paused
    return () => {
      const { served, servedOver } = exchange
      if (!served || servedOver || !this.#runs(served) || paused || to.pauses !== pauses) return
      this.#report(
        'calls-are-released', `${exchange}, which ended as ${exchange.outcome}, is still open at the served end`,
      )
    }
  }

  #runs(network: WatchedNetwork): boolean {
    return network.node.running && this.#networks.get(network.node) === network
  }

  #report(rule: string, text: string): void { this.#world.fail('safety', rule, text) }
}

function paused(node: SimulatedNode, ms: number): Promise<void> {
  return new Promise(resolve => { node.clock.setTimer(ms, resolve) })
}
