/**
 * Coordinators and anti-entropy of several nodes over replicas in memory, with links that can be cut, hang, fail or
 * delay calls.
 */
import { deriveVerbs, ReplicaError, revisionHash, shardKey, shardRanges, shardVerbs } from '@sectional/core'
import type {
  CallContext, indexVerbs, Leaf, ReplicaErrorCode, ShardId, ShardReplica, VerbNames,
} from '@sectional/core'
import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import { ManualClock, MemorySandbox, SeededRandom, sleep, Turns } from '@sectional/runtime'
import type { Log, Metrics, Runtime, Sandbox } from '@sectional/runtime'
import { AntiEntropy } from '../src/anti-entropy/anti-entropy.ts'
import type { AntiEntropyOptions } from '../src/anti-entropy/anti-entropy-options.ts'
import type { ClusterState, DatabaseRecord } from '../src/control/cluster-state.ts'
import type { DesignDocumentOptions } from '../src/design-documents/design-document-options.ts'
import type { CommitListener, DamageListener } from '../src/replicas/local-replicas.ts'
import { createCoordinator } from '../src/coordinator-node.ts'
import type { CoordinatorNode, CoordinatorParts } from '../src/coordinator-node.ts'
import type { CoordinatorOptions } from '../src/contracts/coordinator-options.ts'
import type { DocumentWrite, OperationContext } from '../src/contracts/coordinator.ts'

export type Verb = VerbNames<typeof shardVerbs> | VerbNames<typeof indexVerbs>

/** The behaviour of a node towards its peers. */
export type Fault =
  /** Calls of these verbs, or all calls, are never answered. */
  | { readonly kind: 'hang'; readonly verbs?: readonly Verb[] }
  /** Calls of these verbs arrive later, if they have the time for it. */
  | { readonly kind: 'delay'; readonly ms: number; readonly verbs: readonly Verb[] }
  | { readonly kind: 'fail'; readonly code: ReplicaErrorCode; readonly verbs?: readonly Verb[] }
  /** Calls are carried out, but the caller receives an error. */
  | { readonly kind: 'lose-reply'; readonly verbs: readonly Verb[] }
  /** The link has no room for calls that wait for changes. */
  | { readonly kind: 'refuse-waits' }
  /** The node is stopping: it begins this number of further calls of its peers and refuses the others. */
  | { readonly kind: 'stop'; left: number }
  /** Scans fail after this number of pages. */
  | { readonly kind: 'break-scan'; readonly afterPages: number }

export interface WorldOptions {
  readonly nodes?: readonly string[]
  readonly q?: number
  readonly n?: number
  readonly partitioned?: boolean
  readonly seed?: number
  readonly coordinator?: Partial<CoordinatorOptions>
  readonly antiEntropy?: Partial<AntiEntropyOptions>
  readonly designDocuments?: Partial<DesignDocumentOptions>
}

export class ReplicaWorld {
  readonly clock = new ManualClock()
  /** Runs the validation functions of all nodes. */
  sandbox: Sandbox = new MemorySandbox()
  readonly nodes: readonly string[]
  readonly calls: { readonly from: string; readonly node: string; readonly verb: Verb }[] = []
  readonly faults = new Map<string, Fault>()
  readonly metrics = new Map<string, TestMetrics>()
  readonly filledReports: string[] = []
  /** Called when a node reports that a replica is filled, or damaged, and when it rebuilds a replica. */
  onFilled: () => Promise<void> = async () => {}
  onDamaged: () => Promise<boolean> = async () => false
  onRebuild: () => void = () => {}
  /** Replicas (`node shard`) whose process did not stop in order. */
  readonly uncompared = new Set<string>()
  /** Largest number of turns of the event loop that a remote call takes in each direction; drawn at random. */
  jitterTurns = 0
  /** False while nodes that start do not know the metadata yet. */
  stateKnown = true
  /** Milliseconds since 1970 as the replicas record them. Advances a little with each change. */
  time = 0
  db: DatabaseRecord
  readonly #options: WorldOptions
  readonly #random: SeededRandom
  readonly #replicas = new Map<string, Map<string, MemoryShardReplica>>()
  readonly #commitListeners = new Map<string, Set<CommitListener>>()
  readonly #damageListeners = new Map<string, Set<DamageListener>>()
  readonly #missedListeners = new Map<string, Set<(shard: ShardId) => void>>()
  readonly #linkListeners = new Map<string, Set<(peer: { readonly node: string }, up: boolean) => void>>()
  readonly #stateListeners = new Set<(state: ClusterState) => void>()
  readonly #cuts = new Set<string>()
  #lives = 0
  #stamp = 0

  constructor(options: WorldOptions = {}) {
    this.#options = options
    this.nodes = options.nodes ?? ['a', 'b', 'c']
    this.#random = new SeededRandom(options.seed ?? 1)
    const n = Math.min(options.n ?? this.nodes.length, this.nodes.length)
    this.db = {
      name: 'db', incarnation: 'one', partitioned: options.partitioned ?? false, n, security: {}, revsLimit: 1000,
      purgedInfosLimit: 1000, autoPurge: {},
      shards: shardRanges(options.q ?? 1).map((range, i) => ({
        range,
        replicas: Array.from(
          { length: n }, (_, k) => ({ node: this.nodes[(i + k) % this.nodes.length]!, filling: false }),
        ),
      })),
    }
    for (const node of this.nodes) {
      this.#commitListeners.set(node, new Set())
      this.#damageListeners.set(node, new Set())
      this.#missedListeners.set(node, new Set())
      this.#linkListeners.set(node, new Set())
      this.#replicas.set(node, new Map())
      this.host(node)
    }
  }

  /** Makes the replicas that the shard map places on a node. */
  host(node: string): void {
    const hosted = this.#replicas.get(node)!
    for (const { range, replicas } of this.db.shards) {
      const shard: ShardId = { incarnation: this.db.incarnation, range }
      if (hosted.has(shardKey(shard)) || !replicas.some(replica => replica.node === node)) continue
      hosted.set(shardKey(shard), new MemoryShardReplica({
        history: `${node}-${++this.#lives}`, now: () => this.time + ++this.#stamp, partitioned: this.db.partitioned,
        onCommit: (documents, designs) => {
          for (const listener of this.#commitListeners.get(node)!) listener(shard, documents, designs)
        },
        onMissed: () => { for (const listener of this.#missedListeners.get(node)!) listener(shard) },
      }))
    }
  }

  /** Removes all replicas of a node, as the loss of its disk does. */
  wipe(node: string): void {
    this.#replicas.get(node)!.clear()
    this.host(node)
  }

  setDatabase(db: DatabaseRecord): void {
    this.db = db
    for (const node of this.nodes) this.host(node)
    for (const listener of this.#stateListeners) listener(this.state())
  }

  state(): ClusterState {
    return { clusterId: 'c', index: 1, nodes: {}, databases: new Map([[this.db.name, this.db]]), settings: {} }
  }

  store(node: string, shardIndex = 0): MemoryShardReplica {
    const { incarnation, shards } = this.db
    return this.#replicas.get(node)!.get(shardKey({ incarnation, range: shards[shardIndex]!.range }))!
  }

  /** Lets a node notice that a record of its replica is damaged. */
  damage(node: string, shardIndex = 0): void {
    const { incarnation, shards } = this.db
    for (const listener of this.#damageListeners.get(node)!) {
      listener.damagedReplica({ incarnation, range: shards[shardIndex]!.range })
    }
  }

  isConnected(from: string, to: string): boolean {
    return from === to || !this.#cuts.has([from, to].sort().join())
  }

  cut(a: string, b: string): void {
    if (!this.isConnected(a, b)) return
    this.#cuts.add([a, b].sort().join())
    this.#linkChanged(a, b, false)
  }

  isolate(node: string): void {
    for (const other of this.nodes) if (other !== node) this.cut(node, other)
  }

  /** Rejects when the link breaks during the call. */
  unlessCut<T>(from: string, to: string, call: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const listeners = this.#linkListeners.get(from)!
      const onChange = (peer: { readonly node: string }, up: boolean): void => {
        if (peer.node === to && !up) reject(new ReplicaError('unreachable', `the link from ${from} to ${to} broke`))
      }
      listeners.add(onChange)
      call.then(resolve, reject).finally(() => listeners.delete(onChange))
    })
  }

  heal(): void {
    const cuts = [...this.#cuts]
    this.#cuts.clear()
    for (const pair of cuts) {
      const [a, b] = pair.split(',')
      this.#linkChanged(a!, b!, true)
    }
  }

  coordinator(
    node: string, parts: Pick<CoordinatorParts, 'onMissed' | 'onDesignWritten' | 'views'> = {},
  ): CoordinatorNode {
    return createCoordinator({
      runtime: this.runtime(node), control: { node, state: () => this.state() }, replicas: this.directory(node),
      options: this.#options.coordinator, designDocuments: this.#options.designDocuments, ...parts,
    })
  }

  /** Calls back after each change of a replica of the node. */
  onCommit(node: string, listener: CommitListener): () => void {
    return subscribe(this.#commitListeners.get(node)!, listener)
  }

  antiEntropy(node: string): AntiEntropy {
    const hosted = this.#replicas.get(node)!
    return new AntiEntropy({
      runtime: this.runtime(node),
      control: {
        node, state: () => this.stateKnown ? this.state() : null,
        onChange: listener => {
          this.#stateListeners.add(listener)
          return () => { this.#stateListeners.delete(listener) }
        },
        replicaDamaged: () => this.onDamaged(),
        replicaFilled: (incarnation, range, filled) => {
          this.filledReports.push(`${incarnation} ${range.begin} ${filled}`)
          return this.onFilled()
        },
      },
      replicas: this.directory(node),
      local: {
        shards: () => this.db.shards.map(({ range }) => ({ incarnation: this.db.incarnation, range }))
          .filter(shard => hosted.has(shardKey(shard))),
        replica: shard => hosted.get(shardKey(shard)),
        setCatchingUp: (shard, catchingUp) => { hosted.get(shardKey(shard))!.catchingUp = catchingUp },
        onDamage: listener => subscribe(this.#damageListeners.get(node)!, listener),
        isUncompared: shard => this.uncompared.has(`${node} ${shardKey(shard)}`),
        compared: shard => { this.uncompared.delete(`${node} ${shardKey(shard)}`) },
        onMissed: listener => subscribe(this.#missedListeners.get(node)!, listener),
        rebuild: async () => { this.onRebuild() },
        onCommit: listener => this.onCommit(node, listener),
      },
      peers: { onChange: listener => subscribe(this.#linkListeners.get(node)!, listener) },
      options: { digestIntervalMs: 0, ...this.#options.antiEntropy },
    })
  }

  directory(
    from: string,
  ): { replica(
    node: string, shard: ShardId,
  ): ShardReplica; isConnected(node: string): boolean; isCatchingUp(shard: ShardId): boolean } {
    return {
      replica: (node, shard) =>
        new FaultyReplica({ world: this, from, node, replica: this.#replicas.get(node)?.get(shardKey(shard)) }),
      isConnected: node => this.isConnected(from, node),
      isCatchingUp: shard => this.#replicas.get(from)?.get(shardKey(shard))?.catchingUp ?? false,
    }
  }

  runtime(node: string): Runtime {
    let metrics = this.metrics.get(node)
    if (metrics === undefined) this.metrics.set(node, metrics = new TestMetrics())
    const { clock } = this
    const { sandbox } = this
    return {
      clock, turns: new Turns(clock), random: this.#random, log: silentLog, metrics, sandbox,
    } as unknown as Runtime
  }

  async jitter(): Promise<void> {
    for (let turns = Math.floor(this.#random.fraction() * (this.jitterTurns + 1)); turns > 0; turns--) {
      await new Promise(resolve => { setImmediate(resolve) })
    }
  }

  /** Advances the clock until the promise settles. */
  async during<T>(work: Promise<T>, limitMs = 120_000): Promise<T> {
    let settled = false
    const mark = (): void => { settled = true }
    work.then(mark, mark)
    for (let passed = 0; !settled; passed += 10) {
      if (passed > limitMs) throw new Error(`not settled after ${limitMs} ms`)
      await this.clock.advance(passed === 0 ? 0 : 10)
    }
    return work
  }

  /** Returns the leaves of a document on each node that hosts it, without faults. */
  async leavesOf(id: string, shardIndex = 0): Promise<Record<string, readonly Leaf[]>> {
    const leaves: Record<string, readonly Leaf[]> = {}
    for (const { node } of this.db.shards[shardIndex]!.replicas) {
      leaves[node] = (await this.store(node, shardIndex)
        .openDocument({ id, body: false, tree: false }, plainCall))?.leaves ?? []
    }
    return leaves
  }

  #linkChanged(a: string, b: string, up: boolean): void {
    for (const listener of this.#linkListeners.get(a)!) listener({ node: b }, up)
    for (const listener of this.#linkListeners.get(b)!) listener({ node: a }, up)
  }
}

export const plainCall: CallContext = { timeoutMs: 1000 }

export function request(requestId = 'test'): OperationContext {
  return { requestId, signal: new AbortController().signal }
}

export function bytes(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value))
}

export function text(body: Uint8Array | undefined | null): string | undefined {
  return body === undefined || body === null ? undefined : Buffer.from(body).toString()
}

/** Makes an edit as the HTTP layer does. */
export function edit(id: string, parent: string | null, value: unknown, deleted = false): DocumentWrite {
  const body = bytes(value)
  return { id, parent, deleted, body, revisionHash: revisionHash({ deleted, parent, body }) }
}

export class TestMetrics implements Metrics {
  readonly #values = new Map<string, number>()
  readonly #collectors: (() => void | Promise<void>)[] = []

  counter(name: string) {
    return { add: (value = 1, labels = {}) => this.#put(name, labels, (this.#get(name, labels) ?? 0) + value) }
  }
  gauge(name: string) {
    return {
      set: (value: number, labels = {}) => this.#put(name, labels, value),
      add: (value: number, labels = {}) => this.#put(name, labels, (this.#get(name, labels) ?? 0) + value),
    }
  }

  histogram() { return { observe: () => {} } }
  onCollect(collect: () => void | Promise<void>): void { this.#collectors.push(collect) }
  async render(): Promise<string> { return '' }
  async samples(): Promise<[]> { return [] }

  /** Returns the sum over all labels, or the value of one label. */
  async value(name: string, label?: string): Promise<number> {
    for (const collect of this.#collectors) await collect()
    return [...this.#values].filter(([key]) =>
      key.startsWith(`${name} `) && (label === undefined || key.includes(`"${label}"`)))
      .reduce((sum, [, value]) => sum + value, 0)
  }

  #get(name: string, labels: object): number | undefined {
    return this.#values.get(`${name} ${JSON.stringify(labels)}`)
  }
  #put(name: string, labels: object, value: number): void {
    this.#values.set(`${name} ${JSON.stringify(labels)}`, value)
  }
}

const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {}, child: () => silentLog }

function subscribe<T>(listeners: Set<T>, listener: T): () => void {
  listeners.add(listener)
  return () => { listeners.delete(listener) }
}

/** The way from one node to another one, or to itself. */
export interface TestLink {
  readonly world: ReplicaWorld
  readonly from: string
  readonly node: string
}

/** A replica as one node reaches it; `replica` is undefined when there is none. */
interface Seen extends TestLink { readonly replica: MemoryShardReplica | undefined }

/** Calls to the replica, subject to the faults between the two nodes. */
const FaultyReplica = deriveVerbs<typeof shardVerbs, Seen>(shardVerbs, {
  call: verb => (seen, request, context) => noted(seen, verb.name, () => faultyCall(seen, verb.name, async () => {
    const waits = verb.waits?.(request) ?? false
    if (waits && seen.replica !== undefined && seen.world.faults.get(seen.node)?.kind === 'refuse-waits') {
      throw new ReplicaError('overloaded', 'so many calls wait as may')
    }
    return verb.invoke(present(seen), request, context)
  }, context)),
  upload: verb => (seen, chunks, context) => noted(seen, verb.name, () => (
    faultyCall(seen, verb.name, async () => verb.invoke(present(seen), chunks, context), context))),
  pages: verb => (seen, request, context) => noted(seen, verb.name, () => (
    faultyPages(seen, verb.name, () => verb.invoke(present(seen), request, context), context))),
  download: verb => (seen, request, context) => noted(seen, verb.name, () => (
    faultyPages(seen, verb.name, () => verb.invoke(present(seen), request, context), context))),
})

/** Records a call in `ReplicaWorld.calls`. */
export function noted<T>({ world, from, node }: TestLink, verb: Verb, act: () => T): T {
  world.calls.push({ from, node, verb })
  return act()
}

function present({ replica }: Seen): MemoryShardReplica {
  if (replica === undefined) throw new ReplicaError('not_hosted', 'no such replica')
  return replica
}

/** Carries out a call, subject to the faults of the link. */
export async function faultyCall<T>(
  { world, from, node }: TestLink, verb: Verb, act: () => Promise<T>, context: CallContext,
): Promise<T> {
  const fault = world.faults.get(node)
  if (!world.isConnected(from, node)) throw new ReplicaError('unreachable', `no link from ${from} to ${node}`)
  if (from === node && fault?.kind !== 'fail') return act()
  if (fault?.kind === 'stop' && fault.left-- <= 0) {
    throw new ReplicaError('unreachable', 'the called node is stopping', { nothingDone: true })
  }
  if (fault?.kind === 'hang' && (fault.verbs === undefined || fault.verbs.includes(verb))) await timeout(world, context)
  if (fault?.kind === 'fail' && (fault.verbs === undefined || fault.verbs.includes(verb))) {
    throw new ReplicaError(fault.code, `${node} fails`)
  }
  if (fault?.kind === 'delay' && fault.verbs.includes(verb)) {
    await (fault.ms < context.timeoutMs ? sleep(world.clock, fault.ms) : timeout(world, context))
  }
  await world.jitter()
  const value = await (verb === 'waitForChange' || verb === 'buildIndex' ? world.unlessCut(from, node, act()) : act())
  await world.jitter()
  if (fault?.kind === 'lose-reply' && fault.verbs.includes(verb)) {
    throw new ReplicaError('unreachable', 'the link broke during the call')
  }
  return value
}

/** Reads pages, subject to the faults of the link. */
export async function* faultyPages<Page>(
  seen: TestLink, verb: Verb, open: () => AsyncIterable<Page>, context: CallContext,
): AsyncGenerator<Page> {
  let pages = 0
  const { world, node } = seen
  await faultyCall(seen, verb, async () => {}, context)
  for await (const page of open()) {
    const fault = world.faults.get(node)
    if (fault?.kind === 'break-scan' && pages++ >= fault.afterPages) {
      throw new ReplicaError('unreachable', 'the link broke during the scan')
    }
    yield await faultyCall(seen, verb, async () => page, context)
  }
}

function timeout(world: ReplicaWorld, context: CallContext): Promise<never> {
  return new Promise((_, reject) => {
    const onAbort = (): void => {
      timer.cancel()
      reject(new ReplicaError('cancelled', 'cancelled'))
    }
    const timer = world.clock.setTimer(context.timeoutMs, () => {
      context.signal?.removeEventListener('abort', onAbort)
      reject(new ReplicaError('timeout', 'no answer'))
    })
    context.signal?.addEventListener('abort', onAbort, { once: true })
  })
}
