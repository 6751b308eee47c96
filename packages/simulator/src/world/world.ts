/**
 * A cluster on simulated machines, in ten words: start, stop, crash, pause, continue, partition, heal, write,
 * read, converge. Nodes are numbered from 1.
 */
import { MemoryNetworkHub } from '@sectional/runtime'
import type { NetworkFaults } from '@sectional/runtime'
import { defaultRaftDriverOptions } from '@sectional/server'
import type { RaftDriverOptions } from '@sectional/server'
import type { Answer, Request } from './answer.ts'
import { Dice } from './dice.ts'
import { EventQueue } from './event-queue.ts'
import { Failure } from './failure.ts'
import type { FailureKind } from './failure.ts'
import { NodeClock } from './node-clock.ts'
import type { NodePlace } from './node-settings.ts'
import { SimulatedNode } from './simulated-node.ts'
import type { Planting } from './simulated-node.ts'
import { Trace } from './trace.ts'

/**
 * Small, so that snapshots of a few databases travel in many pieces; a planted bug may have to see a whole one in its
 * message.
 */
const smallPieceBytes = 700

export interface WorldOptions {
  readonly seed: number
  readonly nodes: number
  /** How many of the nodes, the first ones, stand in every node's seed list; default all. */
  readonly seeds?: number
  /** section -> key -> value, of every node. */
  readonly settings?: NodePlace['settings']
  /** The same of single nodes, by number, over those of every node. */
  readonly nodeSettings?: Readonly<Record<number, NodePlace['settings']>>
  /** Milliseconds that a frame travels, before a slow link's share. */
  readonly linkDelayMs?: { readonly min: number; readonly max: number }
  /** Largest deviation of a node's clock from true time, as a fraction; and of its wall clock, in milliseconds. */
  readonly clockDrift?: number
  readonly clockOffsetMs?: number
  /** When nodes take snapshots of the metadata log, and how much of it they keep; default as in production. */
  readonly snapshots?: Pick<RaftDriverOptions, 'snapshotEntries' | 'trailingEntries'>
  /** Between two scrubs of a node's disk; default as in production, which a run never reaches. */
  readonly scrubPauseMs?: number
  readonly onLine?: (line: string) => void
  /** A bug to put into every life of every node. */
  readonly plant?: (node: string) => Planting
}

/** Where simulated time begins: milliseconds since 1970. */
const epochMs = 1_750_000_000_000
const readyMsMax = 60_000
const convergeMsMax = 300_000
const pollMs = 500
/** The longest that `run` lets simulated time go on by itself. */
const runMsMax = 24 * 3_600_000
const clientDelayMs = { min: 0.1, max: 2 }

export class World {
  readonly dice: Dice
  readonly trace: Trace
  readonly queue: EventQueue
  readonly hub: MemoryNetworkHub
  readonly nodes: readonly SimulatedNode[]
  readonly seed: number
  /** Called when a life of a node has started. */
  readonly onStarted = new Set<(node: SimulatedNode) => void>()
  /**
   * Called when a node's process gives itself up; returns whether that is to be expected (it is started again then).
   */
  mayGiveUp: (node: SimulatedNode) => boolean = () => false
  #failure: Failure | undefined
  /** Milliseconds added to the frames from one host to another. */
  readonly #slow = new Map<string, number>()
  #killChance = 0

  constructor(options: WorldOptions) {
    this.seed = options.seed
    this.dice = new Dice(options.seed)
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
    }
  }

  #machines(
    { nodes, seeds = nodes, settings = {}, nodeSettings = {}, clockDrift = 0, clockOffsetMs = 0, snapshots, scrubPauseMs, plant }: WorldOptions,
  ): SimulatedNode[] {
    const numbers = Array.from({ length: nodes }, (_, index) => index + 1)
    const seedHosts = numbers.slice(0, seeds).map(number => `host${number}`)
    const clocks = this.dice.fork('clocks')
    const clients = this.dice.fork('clients of nodes')
    return numbers.map(number => {
      const host = `host${number}`
      const lives = this.dice.fork(`lives ${number}`)
      return new SimulatedNode({
        place: {
          number, name: `node${number}@sim`, host, seeds: seedHosts, settings: { ...settings, ...nodeSettings[number] },
        },
        queue: this.queue,
        hub: this.hub,
        clock: new NodeClock(
          this.queue, host, 1 + clocks.between(-clockDrift, clockDrift), clocks.between(-clockOffsetMs, clockOffsetMs),
        ),
        lifeSeed: () => lives.seed(),
        clientDelayMs: () => clients.between(clientDelayMs.min, clientDelayMs.max),
        onLog: (node, level, text) => this.say(`${node.host} ${level} ${text}`),
        onFatal: (node, error) => this.#gaveUp(node, error),
        plant,
        ...(snapshots && { controlPlane: { raft: {
          ...defaultRaftDriverOptions, ...snapshots,
          ...(plant === undefined && {
            raft: { ...defaultRaftDriverOptions.raft, snapshotPieceBytes: smallPieceBytes },
          }),
        } } }),
        ...(scrubPauseMs !== undefined && { scrub: { pauseMs: scrubPauseMs } }),
        onStarted: node => { for (const listener of this.onStarted) listener(node) },
      })
    })
  }

  // Time, and what is known of the run

  /** True time since the beginning, in milliseconds. */
  get nowMs(): number {
    return this.queue.monotonic()
  }

  get failure(): Failure | undefined {
    return this.#failure
  }

  say(text: string): void {
    this.trace.line(this.nowMs, text)
  }

  /** The first failure ends the run. */
  fail(kind: FailureKind, finder: string, message: string, cause?: unknown): void {
    this.say(`FAILURE ${kind} (${finder}): ${message}`)
    this.#failure ??= new Failure(kind, finder, message, { cause })
  }

  sleep(ms: number): Promise<void> {
    return this.queue.sleep(ms)
  }

  /**
   * Lets time pass until the work is done.
   * @throws Failure the first one seen; of kind `liveness` when time runs out or nothing is left to happen
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

  // The ten words

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

  /** Nodes of different groups no longer reach each other. */
  partition(...groups: readonly (readonly number[])[]): void {
    this.say(`partition ${groups.map(group => group.join(',')).join(' | ')}`)
    this.hub.partition(groups.map(group => group.map(number => this.node(number).host)))
  }

  /** What the one node sends does not reach the other; the way back is open. */
  cut(from: number, to: number): void {
    this.say(`cut ${from} > ${to}`)
    this.hub.cut(this.node(from).host, this.node(to).host)
  }

  slow(from: number, to: number, ms: number): void {
    this.say(`slow ${from} > ${to} up to ${Math.round(ms)} ms`)
    this.#slow.set(`${this.node(from).host} ${this.node(to).host}`, ms)
  }

  /** Each frame kills its connection with this probability. */
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
   * The connections of two nodes die at the first one's end alone; the other one keeps its dead end for up to so long.
   */
  sever(a: number, b: number, lingerMs: number): void {
    this.say(`sever connections of ${a} with ${b}, which notices after up to ${Math.round(lingerMs)} ms`)
    this.hub.sever(this.node(a).host, this.node(b).host, lingerMs)
  }

  /** Ends every fault of the network. */
  heal(): void {
    this.say('heal')
    this.#slow.clear()
    this.#killChance = 0
    this.hub.heal()
  }

  send(
    number: number, method: string, target: string, json?: unknown,
    options: Pick<Request, 'content' | 'timeoutMs' | 'onDelivered' | 'onAnswered'> = {},
  ): Promise<Answer> {
    return this.node(number).send({ method, target, ...(json === undefined ? {} : { json }), ...options })
  }

  /** PUT through one node; the answer as it came. */
  write(number: number, database: string, id: string, document: object): Promise<Answer> {
    return this.send(number, 'PUT', `/${database}/${encodeURIComponent(id)}`, document)
  }

  read(number: number, database: string, id: string, query = ''): Promise<Answer> {
    return this.send(number, 'GET', `/${database}/${encodeURIComponent(id)}${query}`)
  }

  /** Waits until the given nodes (default: those that run) serve. @throws Failure `liveness` */
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
   * Waits until all replicas of every shard hold the same documents, revision trees and all.
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
   * Polls until the check gives null instead of a reason.
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
