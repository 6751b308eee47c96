import type { IndexReplica, PeerNetwork, ShardId, ShardReplica } from '@sectional/core'
import { createMemoryRuntime, MemoryDisk, ResponseCutError, SeededRandom } from '@sectional/runtime'
import type { MemoryNetworkHub, MemoryRuntime, Runtime } from '@sectional/runtime'
import { createNode, LiveConfiguration, nodeOptions } from '@sectional/server'
import type { Node, NodeSeams } from '@sectional/server'
import { refused, unknown } from './answer.ts'
import type { Answer, Request } from './answer.ts'
import { ChecksumSeal } from './checksum-seal.ts'
import { administrator, nodeSettings } from './node-settings.ts'
import type { NodePlace } from './node-settings.ts'
import type { EventQueue } from './event-queue.ts'
import type { NodeClock } from './node-clock.ts'
import { NodeLog } from './node-log.ts'
import type { LogLevel } from './node-log.ts'

export interface SimulatedNodeParts {
  readonly place: NodePlace
  readonly queue: EventQueue
  readonly hub: MemoryNetworkHub
  readonly clock: NodeClock
  /** Returns a random seed for each start of the node. */
  readonly runSeed: () => number
  /** Returns the milliseconds that a message between this node and a client takes. */
  readonly clientDelayMs: () => number
  readonly onLog: (node: SimulatedNode, level: LogLevel, text: string) => void
  /** Called when the node's process would end itself. */
  readonly onFatal: (node: SimulatedNode, error: Error) => void
  readonly onStarted: (node: SimulatedNode) => void
  /** Overrides production limits of the control plane. */
  readonly controlPlane?: NodeSeams['controlPlane']
  readonly scrub?: NodeSeams['scrub']
  /** Overrides production limits of anti-entropy, the coordinator and the caches of documents. */
  readonly limits?: Pick<NodeSeams, 'antiEntropy' | 'caches' | 'coordinator'>
  readonly observers: ReadonlySet<NodeObserver>
  /** Called for each start of a node: returns a function that wraps its replicas, inside of planted bugs. */
  readonly observe?: ((node: string) => NonNullable<NodeSeams['replica']>) | undefined
  /** Called for each start of a node: returns the bug to plant. */
  readonly plant?: (node: string) => Planting
}

/** Parts of one node process that a planted bug replaces. */
export interface Planting {
  readonly runtime?: (runtime: Runtime) => Runtime
  readonly seams?: NodeSeams
}

/**
 * Watches the parts of a node process without changing what they do. `network` is what the node sends and receives,
 * after any bug that is planted in front of it.
 */
export interface NodeObserver {
  readonly network?: (node: SimulatedNode, network: PeerNetwork, runtime: Runtime) => PeerNetwork
  readonly replica?: (node: SimulatedNode, shard: ShardId, replica: ShardReplica) => ShardReplica
  /** Returns the indexes of a replica for one call. */
  readonly indexes?: (node: SimulatedNode, indexes: IndexReplica) => IndexReplica
}

/** Returns the indexes of a replica of the node. */
export type IndexesOf = (shard: ShardId) => IndexReplica

/** One process of the node, from its start to its end. */
interface NodeRun {
  readonly runtime: MemoryRuntime
  readonly node: Node
  /** Returns the indexes of a replica on this node, as its peers see them; undefined until its parts exist. */
  readonly indexes: () => IndexesOf | undefined
  /** Whether `node.start()` has resolved. */
  started: boolean
  stopping: boolean
  /** Resolves when the process has ended, for any reason. */
  readonly ended: PromiseWithResolvers<void>
}

const defaultTimeoutMs = 30_000
/** The reason of an abort; one of its own would cost the recording of a stack. */
const closed = new Error('the client has closed the connection')
const version = '0.0.0-simulated'

/** One machine: a disk that survives crashes, a clock, and at most one process at a time. */
export class SimulatedNode {
  readonly number: number
  readonly name: string
  readonly host: string
  readonly clock: NodeClock
  readonly #parts: SimulatedNodeParts
  /** Requests that arrived while the process was paused. */
  readonly #waiting: (() => void)[] = []
  #disk: MemoryDisk
  #run: NodeRun | undefined
  #paused = false
  /** Limits of the links of the processes that are started from now on; undefined: those of production. */
  linkLimits: NodeSeams['links']
  /** How often a process was paused. */
  pauses = 0
  /** Resources that a process left open when it stopped in good order; must stay empty. */
  readonly leaks: string[] = []

  constructor(parts: SimulatedNodeParts) {
    this.#parts = parts
    this.number = parts.place.number
    this.name = parts.place.name
    this.host = parts.place.host
    this.clock = parts.clock
    this.#disk = new MemoryDisk(parts.clock)
  }

  get disk(): MemoryDisk {
    return this.#disk
  }

  /** Whether a process exists, paused or not. */
  get running(): boolean {
    return this.#run !== undefined
  }

  get paused(): boolean {
    return this.#paused
  }

  get stopping(): boolean {
    return this.#run?.stopping ?? false
  }

  /** The running node, for checkers; undefined before it has started and after it has ended. */
  get inside(): Node | undefined {
    return this.#run?.started === true ? this.#run.node : undefined
  }

  /** The function that returns the indexes of the replicas of the running node, for checkers. */
  get indexes(): IndexesOf | undefined {
    return this.#run?.started === true ? this.#run.indexes() : undefined
  }

  /**
   * Starts a process. Resolves when the node has started, or when its process was ended in the meantime. Rejects when
   * the node cannot start; its process has then ended.
   */
  async start(): Promise<void> {
    if (this.#run !== undefined) throw new Error(`${this.name} runs already`)
    const { hub, place, runSeed, onFatal, onLog, onStarted } = this.#parts
    const configuration = await LiveConfiguration.load(
      { read: async () => [{ name: 'local.ini', text: nodeSettings(place) }], write: async () => {} }, {},
    )
    const runtime = createMemoryRuntime({
      node: this.host, clock: this.clock, hub, disk: this.disk, random: new SeededRandom(runSeed()),
      log: new NodeLog((level, text) => { if (this.#run === run) onLog(this, level, text) }),
    })
    const planting = this.#parts.plant?.(this.name) ?? {}
    const planted = planting.seams
    let indexesOf: IndexesOf | undefined
    const indexes = (local: IndexesOf): IndexesOf => {
      const shown = planted?.indexes?.(local) ?? local
      const observers = [...this.#parts.observers]
      indexesOf = shard => observers.reduce((inner, each) => each.indexes?.(this, inner) ?? inner, shown(shard))
      return indexesOf
    }
    const node = createNode(planting.runtime?.(runtime) ?? runtime, {
      options: nodeOptions(configuration.settings()), configuration, version,
      seams: {
        sealFrames: key => new ChecksumSeal(key),
        scrub: this.#parts.scrub, ...this.#parts.limits, ...planted, ...this.#watched(planted, runtime), indexes,
        ...(this.linkLimits && { links: this.linkLimits }),
        controlPlane: { ...this.#parts.controlPlane, ...planted?.controlPlane },
        coordinator: { ...this.#parts.limits?.coordinator, ...planted?.coordinator },
      },
      onFatal: error => { if (this.#run === run) onFatal(this, error) },
    })
    const run: NodeRun = {
      runtime, node, indexes: () => indexesOf, started: false, stopping: false, ended: Promise.withResolvers(),
    }
    this.#run = run
    try {
      await Promise.race([node.start(), run.ended.promise])
    } catch (error) {
      if (run.stopping || this.#run !== run) return
      this.#end(run)
      throw error
    }
    if (this.#run !== run) return
    run.started = true
    onStarted(this)
  }

  /** Returns the seams that observers see, in front of which planted bugs stay. */
  #watched(planted: NodeSeams | undefined, runtime: Runtime): Pick<NodeSeams, 'network' | 'replica'> {
    const observers = [...this.#parts.observers]
    const observe = this.#parts.observe?.(this.name)
    const network = (original: PeerNetwork): PeerNetwork => {
      const watched = observers.reduce((inner, each) => each.network?.(this, inner, runtime) ?? inner, original)
      return planted?.network?.(watched) ?? watched
    }
    const replica = (shard: ShardId, original: ShardReplica): ShardReplica => {
      const observed = observe?.(shard, original) ?? original
      const changed = planted?.replica?.(shard, observed) ?? observed
      return observers.reduce((inner, each) => each.replica?.(this, shard, inner) ?? inner, changed)
    }
    return { network, replica }
  }

  /** Stops the process in good order. Resolves when it has ended. */
  async stop(): Promise<void> {
    const run = this.#run
    if (run === undefined) return
    run.stopping = true
    await Promise.race([run.node.stop(), run.ended.promise])
    if (this.#run !== run) return
    this.#noteLeaks(run)
    this.#end(run)
  }

  /** Ends the process at once. Data that was not synced is lost, or kept if the faults of the disk say so. */
  crash(): void {
    const run = this.#run
    if (run === undefined) return
    this.#end(run)
  }

  /** Ends the process at once, and the other ends of its connections do not notice it for up to `lingerMs`. */
  powerOff(lingerMs: number): void {
    if (this.#run === undefined) return
    this.#parts.hub.powerOff(this.host, lingerMs)
    this.crash()
  }

  /** Gives the machine an empty disk. No process may be running. */
  wipe(): void {
    if (this.#run !== undefined) throw new Error(`${this.name} runs`)
    this.#disk = new MemoryDisk(this.clock)
  }

  /** Replaces the disk of the machine by a copy. No process may be running. */
  putBack(copy: MemoryDisk): void {
    if (this.#run !== undefined) throw new Error(`${this.name} runs`)
    this.#disk = copy.copy(this.clock)
  }

  pause(): void {
    if (this.#paused || this.#run === undefined) return
    this.#paused = true
    this.pauses++
    this.clock.pause()
    this.#parts.hub.pause(this.host)
  }

  continue(): void {
    if (!this.#paused) return
    this.#paused = false
    this.#parts.hub.resume(this.host)
    this.clock.continue()
    for (const deliver of this.#waiting.splice(0)) deliver()
  }

  /** Sends a request as the administrator, over a connection of its own. */
  send(request: Request): Promise<Answer> {
    const { queue, clientDelayMs } = this.#parts
    return new Promise(resolve => {
      let settled = false
      const gone = new AbortController()
      const timer = queue.schedule(request.timeoutMs ?? defaultTimeoutMs, 'client gives up', () => settle(unknown))
      const settle = (answer: Answer): void => {
        if (settled) return
        settled = true
        timer.cancel()
        gone.abort(closed)
        resolve(answer)
      }
      const reply = (answer: Answer): void => { queue.schedule(clientDelayMs(), 'answer', () => settle(answer)) }
      const deliver = (): void => {
        if (settled) return
        const run = this.#run
        if (run === undefined || !run.started || run.stopping) return reply(refused)
        if (this.#paused) {
          this.#waiting.push(deliver)
          return
        }
        void this.#serve(run, request, gone.signal).then(reply)
      }
      queue.schedule(clientDelayMs(), `request ${this.host}`, deliver)
    })
  }

  async #serve({ runtime }: NodeRun, request: Request, signal: AbortSignal): Promise<Answer> {
    request.onDelivered?.()
    const {
      content = request.json === undefined
        ? undefined
        : { type: 'application/json', text: JSON.stringify(request.json) },
    } = request
    const body = content && { body: content.text }
    const headers = { ...administrator, ...request.headers, ...(content && { 'content-type': content.type }) }
    let answer: Answer = unknown
    const parts: Uint8Array[] = []
    try {
      const { status, chunks } = await runtime.http.open({
        method: request.method, target: request.target, headers, signal, ...body,
      })
      for await (const chunk of chunks) parts.push(chunk)
      answer = { kind: 'answered', status, body: parsed(Buffer.concat(parts)) }
    } catch (error) {
      if (!(error instanceof ResponseCutError)) throw error
      if (parts.length > 0) {
        answer = { kind: 'unknown', status: 0, body: undefined, partial: Buffer.concat(parts).toString() }
      }
    }
    request.onAnswered?.(answer)
    return answer
  }

  #noteLeaks({ runtime }: NodeRun): void {
    if (runtime.clock.pendingTimers > 0) this.leaks.push(`${runtime.clock.pendingTimers} timers`)
    if (this.disk.openStores.length > 0) this.leaks.push(`open stores: ${this.disk.openStores.join(', ')}`)
  }

  #end(run: NodeRun): void {
    this.#run = undefined
    run.runtime.revoke()
    run.ended.resolve()
    if (this.#paused) this.continue()
    for (const deliver of this.#waiting.splice(0)) deliver()
  }
}

function parsed(bytes: Uint8Array): unknown {
  const text = Buffer.from(bytes).toString()
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
