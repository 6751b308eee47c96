/** Nodes for the tests of this package: real links on a network in memory, a manual clock, a log that can be read. */
import { ReplicaError } from '@sectional/core'
import type { CallContext, ControlPeer, PeerHandlers, PeerIdentity, RaftMessage, ShardId, ShardReplica } from '@sectional/core'
import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import { ManualClock, MemoryNetworkHub, SeededRandom } from '@sectional/runtime'
import type { Clock, Log, LogFields, Metrics, Network, Runtime } from '@sectional/runtime'
import { createPeerNetwork } from '@sectional/rpc'
import type { ListeningPeerNetwork, RpcLimits } from '@sectional/rpc'

export const secret = 'a secret that is long enough for a cluster'
export const shard: ShardId = { incarnation: 'incarnation-1', range: { begin: 0, end: 0xffffffff } }
export const context: CallContext = { timeoutMs: 5000 }

export interface LogLine { readonly level: string; readonly fields: LogFields; readonly message: string }

export class MemoryLog implements Log {
  readonly lines: LogLine[] = []
  debug(fields: LogFields, message: string): void { this.lines.push({ level: 'debug', fields, message }) }
  info(fields: LogFields, message: string): void { this.lines.push({ level: 'info', fields, message }) }
  warn(fields: LogFields, message: string): void { this.lines.push({ level: 'warn', fields, message }) }
  error(fields: LogFields, message: string): void { this.lines.push({ level: 'error', fields, message }) }
  child(): Log { return this }
  /** Lines of a level whose message or reason matches. */
  find(level: string, pattern: RegExp): readonly LogLine[] {
    return this.lines.filter(line => line.level === level && (pattern.test(line.message) || pattern.test(String(line.fields.reason))))
  }
  get text(): string { return JSON.stringify(this.lines) }
}

/** Sums by name and label values. */
export class MemoryMetrics implements Metrics {
  readonly values = new Map<string, number>()
  counter(name: string) { return { add: (value = 1, labels = {}) => { this.#add(name, value, labels) } } }
  gauge(name: string) { return { set: (value: number) => { this.values.set(name, value) }, add: (value: number) => { this.#add(name, value, {}) } } }
  histogram(name: string) { return { observe: (_value: number, labels = {}) => { this.#add(name, 1, labels) } } }
  onCollect(): void {}
  async render(): Promise<string> { return '' }
  async samples(): Promise<readonly never[]> { return [] }
  #add(name: string, value: number, labels: Readonly<Record<string, string>>): void {
    const key = [name, ...Object.values(labels)].join(' ')
    this.values.set(key, (this.values.get(key) ?? 0) + value)
  }
}

/** A control peer that answers plainly and remembers what it was told. */
export class RecordingControl implements ControlPeer {
  readonly raft: RaftMessage[] = []
  readonly from: PeerIdentity
  readonly self: PeerIdentity
  constructor(self: PeerIdentity, from: PeerIdentity, raft: RaftMessage[]) {
    this.self = self
    this.from = from
    this.raft = raft
  }
  sendRaft(message: RaftMessage): void { this.raft.push(message) }
  async status() { return { node: this.self.node, address: this.self.address, clusterId: this.self.clusterId, fresh: false, leader: null } }
  async join() { return { kind: 'admitted' as const, clusterId: 'c1' } }
  async propose(command: unknown) { return { kind: 'applied' as const, index: 7, result: { command } } }
  async ask(question: string, argument: unknown) { return { question, argument, from: this.from.node } }
}

export interface TestNodeOptions {
  readonly name: string
  readonly network: Network
  readonly clock: Clock
  readonly port?: number
  readonly clusterId?: string | null
  readonly secret?: string
  readonly limits?: Partial<RpcLimits>
  readonly seed?: number
}

export class TestNode {
  readonly identity: PeerIdentity
  readonly log = new MemoryLog()
  readonly metrics = new MemoryMetrics()
  readonly peers: ListeningPeerNetwork
  readonly raft: RaftMessage[] = []
  readonly changes: string[] = []
  replica: ShardReplica | undefined = new MemoryShardReplica({ history: 'h1' })

  constructor(options: TestNodeOptions) {
    const { name, network, clock, port = 0, clusterId = 'c1', limits = {} } = options
    this.identity = { node: name, address: `${name}:${port}`, clusterId }
    const runtime = {
      clock, network, log: this.log, metrics: this.metrics, random: new SeededRandom(options.seed ?? name.length + port + name.charCodeAt(0)),
    } as unknown as Runtime
    this.peers = createPeerNetwork({
      runtime, limits, log: this.log, identity: this.identity, secret: options.secret ?? secret, listen: { host: name, port },
    })
    this.peers.onChange((peer, up) => this.changes.push(`${up ? '+' : '-'}${peer.node}`))
  }

  get handlers(): PeerHandlers {
    return {
      control: from => new RecordingControl(this.identity, from, this.raft),
      replica: asked => asked.incarnation === shard.incarnation ? this.replica : undefined,
    }
  }

  async start(peers: readonly TestNode[] = []): Promise<this> {
    await this.peers.start(this.handlers)
    this.peers.setPeers(peers.map(peer => peer.identity.address))
    return this
  }

  remote(node: TestNode): ShardReplica { return this.peers.replica(node.identity.node, shard) }
  connected(): readonly string[] { return this.peers.connected().map(peer => peer.node).sort() }
}

/** Several nodes on one hub, by name; each listens at `name:1`. */
export class TestWorld {
  readonly clock = new ManualClock()
  readonly hub = new MemoryNetworkHub({ clock: this.clock })
  readonly nodes: TestNode[] = []

  node(name: string, options: Partial<TestNodeOptions> = {}): TestNode {
    const node = new TestNode({ name, network: this.hub.network(name), clock: this.clock, port: 1, ...options })
    this.nodes.push(node)
    return node
  }

  /** Two nodes with one link, dialed by the first. */
  async pair(options: Partial<TestNodeOptions> = {}): Promise<readonly [TestNode, TestNode]> {
    const a = this.node('a', options)
    const b = this.node('b', options)
    await b.start()
    await a.start([b])
    await this.settle()
    return [a, b]
  }

  /** Lets everything happen that needs no time. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 6; turn++) await this.clock.advance(0)
  }

  /** What a clean stop leaves behind is nothing; returns the open connections and pending timers. */
  async stop(): Promise<{ readonly connections: number; readonly timers: number }> {
    await Promise.all(this.nodes.map(node => node.peers.stop()))
    await this.clock.advance(1000)
    return { connections: this.hub.openConnections, timers: this.clock.pendingTimers }
  }
}

export async function failure(promise: Promise<unknown>): Promise<ReplicaError> {
  try {
    await promise
  } catch (error) {
    if (error instanceof ReplicaError) return error
    throw error
  }
  throw new Error('it did not fail')
}
