/**
 * A cluster on simulated machines. Its vocabulary has ten words: start, stop, crash, pause, continue, partition, heal,
 * write, read, converge. Nodes are numbered from 1.
 */
import { MemoryNetworkHub } from '@sectional/runtime'
import type { NetworkFaults } from '@sectional/runtime'
import { defaultControlPlaneOptions, defaultRaftDriverOptions } from '@sectional/server'
import type { RaftDriverOptions } from '@sectional/server'
import type { Answer, Request } from './answer.ts'
import { CriticalMoments } from './critical-moments.ts'
import { Dice } from './dice.ts'
import { EventQueue } from './event-queue.ts'
import { Failure } from './failure.ts'
import type { FailureKind } from './failure.ts'
import { NodeClock } from './node-clock.ts'
import type { LogLevel } from './node-log.ts'
import type { NodePlace } from './node-settings.ts'
import { SimulatedNode } from './simulated-node.ts'
import type { NodeObserver, Planting, SimulatedNodeParts } from './simulated-node.ts'
import { Trace } from './trace.ts'

/**
 * Small, so that snapshots of a few databases are sent in many pieces. A planted bug may need to see a whole snapshot
 * in one message.
 */
const smallPieceBytes = 700

export interface WorldOptions {
  readonly seed: number
  readonly nodes: number
  /** The first `seeds` nodes are in every node's seed list. Default: all. */
  readonly seeds?: number
  /** Settings of every node: values by section and key. */
  readonly settings?: NodePlace['settings']
  /** Settings of single nodes by node number, which override those of every node. */
  readonly nodeSettings?: Readonly<Record<number, NodePlace['settings']>>
  /** Milliseconds that a frame takes, without the delay of a slow link. */
  readonly linkDelayMs?: { readonly min: number; readonly max: number }
  /** Maximum deviation of the speed of a node's clock, as a fraction. */
  readonly clockDrift?: number
  /** Maximum deviation of a node's wall clock, in milliseconds. */
  readonly clockOffsetMs?: number
  /** When nodes take snapshots of the metadata log, and how many entries they keep. Default: as in production. */
  readonly snapshots?: Pick<RaftDriverOptions, 'snapshotEntries' | 'trailingEntries'>
  /** Milliseconds of a tick of the consensus, which is half a heartbeat interval. Default: as in production. */
  readonly consensusTickMs?: number
  /** Milliseconds between two scrubs of a node's disk. Default: as in production, which a run never reaches. */
  readonly scrubPauseMs?: number
  /** Limits of every node. Default: as in production. */
  readonly limits?: SimulatedNodeParts['limits']
  readonly onLine?: (line: string) => void
  /** Called for each start of a node: returns a function that wraps its replicas. */
  readonly observe?: SimulatedNodeParts['observe']
  /** Returns the bug to plant, for each start of each node. */
  readonly plant?: (node: string) => Planting
}

/** Start of simulated time, in milliseconds since 1970. */
const epochMs = 1_800_000_000_000
const readyMsMax = 60_000
const convergeMsMax = 300_000
const pollMs = 500
/** Maximum simulated milliseconds that `run` takes. */
const runMsMax = 24 * 3_600_000
const powerOffShare = 0.4
/** Milliseconds after which connections to a machine without power are reset. */
const lingerMs = [100, 2000, 20_000]
const clientDelayMs = { min: 0.1, max: 2 }

export class World {
  readonly dice: Dice
  readonly trace: Trace
  readonly queue: EventQueue
  readonly hub: MemoryNetworkHub
  readonly nodes: readonly SimulatedNode[]
  readonly seed: number
  /** Called when a process of a node has started. */
  readonly onStarted = new Set<(node: SimulatedNode) => void>()
  readonly moments = new CriticalMoments()
  /** Watch each process of a node that starts from now on; the first one is next to the process. */
  readonly observers = new Set<NodeObserver>([this.moments])
  /** Called when a node's process ends itself. Returns whether that is expected; the node is then started again. */
  mayGiveUp: (node: SimulatedNode) => boolean = () => false
  /** Returns what arrives instead of a frame from one host to another. */
  tamper: (from: string, to: string, frame: Uint8Array) => readonly Uint8Array[] = (_from, _to, frame) => [frame]
  /** Called for each line of a node's log. */
  readonly onLog = new Set<(node: SimulatedNode, level: LogLevel, text: string) => void>()
  readonly #crashes: Dice
  #failure: Failure | undefined
  /** Milliseconds that are added to frames from one host to another. */
  readonly #slow = new Map<string, number>()
  /** The time at which all frames have arrived that were sent over slow links before the last `heal`. */
  #lateUntilMs = 0
  #killChance = 0
  /** Number of a node that the current partition separates from the others; undefined: there is none. */
  #cutOff: number | undefined
  #suspension: PromiseWithResolvers<void> | undefined

  constructor(options: WorldOptions) {
    this.seed = options.seed
    this.dice = new Dice(options.seed)
    this.#crashes = this.dice.fork('crashes')
    this.trace = new Trace({ onLine: options.onLine })
    this.queue = new EventQueue(this.trace, epochMs)
    this.hub = new MemoryNetworkHub({ clock: this.queue })
    this.hub.setFaults(this.#wires(options.linkDelayMs ?? { min: 0.1, max: 2 }))
    this.nodes = this.#machines(options)
  }

  #wires(delay: { readonly min: number; readonly max: number }): NetworkFaults {
    const dice = this.dice.fork('wires')
    return {
      delayMs: (from, to) =>
        dice.between(delay.min, delay.max) + dice.fraction() * (this.#slow.get(`${from} ${to}`) ?? 0),
      killOnFrame: () => this.#killChance > 0 && dice.chance(this.#killChance),
      tamper: (from, to, frame) => this.tamper(from, to, frame),
    }
  }

  #machines(options: WorldOptions): SimulatedNode[] {
    const { nodes, seeds = nodes, settings = {}, nodeSettings = {}, snapshots, scrubPauseMs, limits, plant } = options
    const { clockDrift = 0, clockOffsetMs = 0, consensusTickMs = defaultRaftDriverOptions.tickMs, observe } = options
    const numbers = Array.from({ length: nodes }, (_, index) => index + 1)
    const seedHosts = numbers.slice(0, seeds).map(number => `host${number}`)
    const clocks = this.dice.fork('clocks')
    const clients = this.dice.fork('clients of nodes')
    return numbers.map(number => {
      const host = `host${number}`
      const runs = this.dice.fork(`lives ${number}`)
      return new SimulatedNode({
        place: {
          number, name: `node${number}@sim`, host, seeds: seedHosts, settings: { ...settings, ...nodeSettings[number] },
        },
        queue: this.queue,
        hub: this.hub,
        clock: new NodeClock(
          this.queue, host, 1 + clocks.between(-clockDrift, clockDrift), clocks.between(-clockOffsetMs, clockOffsetMs),
        ),
        runSeed: () => runs.seed(),
        clientDelayMs: () => clients.between(clientDelayMs.min, clientDelayMs.max),
        onLog: (node, level, text) => {
          this.say(`${node.host} ${level} ${text}`)
          for (const listener of this.onLog) listener(node, level, text)
        },
        onFatal: (node, error) => this.#gaveUp(node, error),
        observers: this.observers, plant, observe,
        controlPlane: {
          // An election must be possible during the wait, as with the default ticks.
          startWaitMs: defaultControlPlaneOptions.startWaitMs * consensusTickMs / defaultRaftDriverOptions.tickMs,
          raft: {
            ...defaultRaftDriverOptions, ...snapshots, tickMs: consensusTickMs,
            ...(snapshots && plant === undefined && {
              raft: { ...defaultRaftDriverOptions.raft, snapshotPieceBytes: smallPieceBytes },
            }),
          },
        },
        ...(limits && { limits }),
        ...(scrubPauseMs !== undefined && { scrub: { pauseMs: scrubPauseMs } }),
        onStarted: node => { for (const listener of this.onStarted) listener(node) },
      })
    })
  }

  // Time, and facts about the run

  /** True time since the beginning, in milliseconds. */
  get nowMs(): number {
    return this.queue.monotonic()
  }

  get failure(): Failure | undefined {
    return this.#failure
  }

  /** Returns one of the nodes that leads the cluster's metadata as far as it knows itself. */
  leader(nodes: readonly SimulatedNode[] = this.nodes): SimulatedNode | undefined {
    return nodes.find(node => node.inside?.control.leader() === node.name)
  }

  say(text: string): void {
    this.trace.line(this.nowMs, text)
  }

  /** Records a failure. The first failure ends the run. */
  fail(kind: FailureKind, finder: string, message: string, cause?: unknown): void {
    this.say(`FAILURE ${kind} (${finder}): ${message}`)
    this.#failure ??= new Failure(kind, finder, message, { cause })
  }

  sleep(ms: number): Promise<void> {
    return this.queue.sleep(ms)
  }

  /**
   * Runs simulated time until the work is done.
   * @throws Failure the first one that was recorded, or one of kind `liveness` when the time is over or no event is
   * left
   */
  async run<Result>(work: () => Promise<Result>, msMax = runMsMax): Promise<Result> {
    let settled = false
    const result = work().finally(() => { settled = true })
    result.catch(() => {}) // thrown below
    const over = await this.queue.run(() => settled || this.#failure !== undefined, this.nowMs + msMax)
    if (this.#failure !== undefined) throw this.#failure
    if (!over) throw new Failure('liveness', 'world', `the run did not come to its end within ${msMax / 1000} s`)
    return result
  }

  /** Resolves at once, or when a suspension of all machines ends. */
  get resumed(): Promise<void> {
    return this.#suspension?.promise ?? Promise.resolve()
  }

  /** Number of a node that a partition separates from the others; undefined: there is none. */
  get cutOff(): number | undefined {
    return this.#cutOff
  }

  /**
   * Pauses the processes of all machines, as when the host of virtual machines is suspended. Their clocks go on, so
   * that all timers that have become due fire when they continue.
   *
   * @returns a function that ends the suspension
   */
  suspend(): () => void {
    const numbers = this.nodes.filter(node => node.running && !node.paused).map(node => node.number)
    const suspension = Promise.withResolvers<void>()
    this.#suspension = suspension
    this.pause(...numbers)
    return () => {
      this.#suspension = undefined
      this.continue(...numbers)
      suspension.resolve()
    }
  }

  // The ten words of the vocabulary

  node(number: number): SimulatedNode {
    const node = this.nodes[number - 1]
    if (node === undefined) throw new RangeError(`there is no node ${number}`)
    return node
  }

  async start(...numbers: readonly number[]): Promise<void> {
    await Promise.all(numbers.map(number => {
      this.say(`start ${number}`)
      return this.node(number).start()
    }))
  }

  async stop(...numbers: readonly number[]): Promise<void> {
    await Promise.all(numbers.map(number => {
      this.say(`stop ${number}`)
      return this.node(number).stop()
    }))
  }

  crash(...numbers: readonly number[]): void {
    for (const number of numbers) {
      this.say(`crash ${number}`)
      this.node(number).crash()
    }
  }

  /** Crashes a node: its process is killed, or its machine loses its power. */
  crashSomehow(number: number): void {
    const dice = this.#crashes
    if (dice.chance(powerOffShare)) this.powerOff(number, dice.pick(lingerMs))
    else this.crash(number)
  }

  /** Crashes a node whose machine loses its power, so that the other nodes are not told of it. */
  powerOff(number: number, lingerMs: number): void {
    this.say(`power off ${number}, which the others notice after up to ${Math.round(lingerMs)} ms`)
    this.node(number).powerOff(lingerMs)
  }

  pause(...numbers: readonly number[]): void {
    for (const number of numbers) {
      this.say(`pause ${number}`)
      this.node(number).pause()
    }
  }

  continue(...numbers: readonly number[]): void {
    for (const number of numbers) {
      this.say(`continue ${number}`)
      this.node(number).continue()
    }
  }

  /** Cuts the connections between nodes of different groups. */
  partition(...groups: readonly (readonly number[])[]): void {
    this.say(`partition ${groups.map(group => group.join(',')).join(' | ')}`)
    this.#cutOff = groups.find(group => group.length === 1)?.[0]
    this.hub.partition(groups.map(group => group.map(number => this.node(number).host)))
  }

  /** Blocks one direction: `to` receives nothing from `from`. The other direction stays open. */
  cut(from: number, to: number): void {
    this.say(`cut ${from} > ${to}`)
    this.hub.cut(this.node(from).host, this.node(to).host)
  }

  slow(from: number, to: number, ms: number): void {
    this.say(`slow ${from} > ${to} up to ${Math.round(ms)} ms`)
    this.#slow.set(`${this.node(from).host} ${this.node(to).host}`, ms)
  }

  /** Makes each frame kill its connection with this probability. */
  dropConnections(chance: number): void {
    this.say(`each frame kills its connection with probability ${chance.toFixed(5)}`)
    this.#killChance = chance
  }

  /** Kills the connections between two nodes once. */
  kill(a: number, b: number): void {
    this.say(`kill connections ${a} - ${b}`)
    const [first, second] = [this.node(a).host, this.node(b).host]
    this.hub.kill((from, to) => from === first && to === second)
  }

  /**
   * Kills the connections of two nodes at the end of `a` only. The end of `b` stays open, without effect, for up to
   * `lingerMs` milliseconds.
   */
  sever(a: number, b: number, lingerMs: number): void {
    this.say(`sever connections of ${a} with ${b}, which notices after up to ${Math.round(lingerMs)} ms`)
    this.hub.sever(this.node(a).host, this.node(b).host, lingerMs)
  }

  /** Ends every network fault. */
  heal(): void {
    this.say('heal')
    this.#lateUntilMs = Math.max(this.#lateUntilMs, this.nowMs + Math.max(0, ...this.#slow.values()))
    this.#slow.clear()
    this.#killChance = 0
    this.#cutOff = undefined
    this.hub.heal()
  }

  /** Waits for the frames that were sent over slow links before the last `heal`; later ones arrive behind them. */
  async lateFrames(): Promise<void> {
    if (this.nowMs < this.#lateUntilMs) await this.sleep(this.#lateUntilMs - this.nowMs)
  }

  send(
    number: number, method: string, target: string, json?: unknown,
    options: Pick<Request, 'content' | 'headers' | 'timeoutMs' | 'onDelivered' | 'onAnswered'> = {},
  ): Promise<Answer> {
    return this.node(number).send({ method, target, ...(json === undefined ? {} : { json }), ...options })
  }

  /** Sends PUT through one node and returns the answer. */
  write(number: number, database: string, id: string, document: object): Promise<Answer> {
    return this.send(number, 'PUT', `/${database}/${encodeURIComponent(id)}`, document)
  }

  read(number: number, database: string, id: string, query = ''): Promise<Answer> {
    return this.send(number, 'GET', `/${database}/${encodeURIComponent(id)}${query}`)
  }

  /** Waits until every node runs and serves requests. @throws Failure `liveness` */
  async allReady(msMax = readyMsMax): Promise<void> {
    await this.eventually('all nodes to run', msMax, async () =>
      this.nodes.every(node => node.inside !== undefined) ? null : 'not yet')
    await this.ready(undefined, msMax)
  }

  /** Waits until the given nodes (default: those that run) serve requests. @throws Failure `liveness` */
  async ready(
    numbers: readonly number[] = this.nodes.filter(node => node.running).map(node => node.number), msMax = readyMsMax,
  ): Promise<void> {
    await this.eventually(`nodes ${numbers.join(', ')} to be up`, msMax, async () => {
      for (const number of numbers) {
        const answer = await this.send(number, 'GET', '/_up')
        if (answer.status !== 200) {
          return `node ${number}: ${answer.kind} ${answer.status} ${JSON.stringify(answer.body)}`
        }
      }
      return null
    })
  }

  /**
   * Waits until all replicas of every shard have the same documents and revision trees.
   *
   * @throws Failure `liveness`
   */
  async converge(database: string, msMax = convergeMsMax): Promise<void> {
    const members = this.nodes.filter(node => node.running)
    await this.eventually(`the replicas of ${database} to be equal`, msMax, async () => {
      const contents = new Map<string, { readonly node: string; readonly text: string }>()
      for (const { number } of members) {
        const answer = await this.send(number, 'GET', `/_node/_local/_replicas/${database}`)
        if (answer.status !== 200) {
          return `node ${number}: ${answer.kind} ${answer.status} ${JSON.stringify(answer.body)}`
        }
        for (const {
          node, range, document_count, deleted_count, digest, filling, catching_up,
        } of answer.body.replicas) {
          const text = `${document_count} documents, ${deleted_count} tombstones, digest ${digest}`
          if (filling || catching_up) return `${range} of ${node} is ${filling ? 'filling' : 'catching up'}`
          const other = contents.get(range)
          if (other !== undefined && other.text !== text) {
            return `${range}: ${other.node} has ${other.text}, ${node} has ${text}`
          }
          contents.set(range, { node, text })
        }
      }
      return null
    })
  }

  /**
   * Polls until the check returns null instead of a reason.
   * @throws Failure `liveness` with the last reason
   */
  async eventually(what: string, msMax: number, check: () => Promise<string | null>): Promise<void> {
    const endMs = this.nowMs + msMax
    for (;;) {
      const reason = await check()
      if (reason === null) return
      if (this.nowMs > endMs) {
        throw new Failure('liveness', 'converge', `waited ${msMax / 1000} s for ${what}: ${reason}`)
      }
      await this.sleep(pollMs)
    }
  }

  #gaveUp(node: SimulatedNode, error: Error): void {
    this.say(`${node.host} gives itself up: ${error.message}`)
    if (!this.mayGiveUp(node)) {
      return this.fail('crash', 'fatal', `${node.name} gave itself up: ${error.message}`, error)
    }
    this.queue.schedule(0, 'process ends', () => node.crash())
  }
}
