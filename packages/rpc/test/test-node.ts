/** Nodes for the tests of this package, with real links on a network in memory, a manual clock and a log in memory. */
import { ReplicaError } from '@sectional/core'
import type {
  AskRequest, CallContext, ControlPeer, IndexReplica, PeerHandlers, PeerIdentity, RaftMessage, ShardId, ShardReplica,
} from '@sectional/core'
import { MemoryShardReplica } from '@sectional/core/shard-replica-memory'
import { createMemoryRuntime, ManualClock, MemoryLog, MemoryNetworkHub, SeededRandom } from '@sectional/runtime'
import type { Clock, LogLine, Metrics, Network, Runtime } from '@sectional/runtime'
import { createPeerNetwork } from '@sectional/rpc'
import type { ListeningPeerNetwork, RpcLimits } from '@sectional/rpc'

export const secret = 'a secret that is long enough for a cluster'
export const shard: ShardId = { incarnation: 'incarnation-1', range: { begin: 0, end: 0xffffffff } }
export const context: CallContext = { timeoutMs: 5000 }

/** Returns the log lines of a level whose message or reason matches. */
export function logged(node: TestNode, level: string, pattern: RegExp): readonly LogLine[] {
  return node.log.lines.filter(line =>
    line.level === level && (pattern.test(line.message) || pattern.test(String(line.fields.reason))))
}

/** A control peer that gives fixed answers and records the consensus messages that it receives. */
export class RecordingControl implements ControlPeer {
  readonly raft: RaftMessage[]
  readonly designChanges: string[]
  readonly from: PeerIdentity
  readonly self: PeerIdentity
  constructor(self: PeerIdentity, from: PeerIdentity, raft: RaftMessage[] = [], designChanges: string[] = []) {
    this.designChanges = designChanges
    this.self = self
    this.from = from
    this.raft = raft
  }
  sendRaft(message: RaftMessage): void { this.raft.push(message) }
  async status() {
    return {
      node: this.self.node, address: this.self.address, clusterId: this.self.clusterId, fresh: false, leader: null,
    }
  }
  async join() { return { kind: 'admitted' as const, clusterId: 'c1' } }
  async propose(command: unknown) { return { kind: 'applied' as const, index: 7, result: { command } } }
  async designChanged(incarnation: string) { this.designChanges.push(incarnation) }
  async ask({ question, argument }: AskRequest) { return { question, argument, from: this.from.node } }
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
  readonly metrics: Metrics
  readonly peers: ListeningPeerNetwork
  readonly raft: RaftMessage[] = []
  /** Incarnations of databases about which peers sent a notice. */
  readonly designChanges: string[] = []
  readonly changes: string[] = []
  replica: ShardReplica | undefined = new MemoryShardReplica({ history: 'h1' })
  indexes: IndexReplica | undefined

  constructor(options: TestNodeOptions) {
    const { name, network, clock, port = 0, clusterId = 'c1', limits = {} } = options
    this.identity = { node: name, address: `${name}:${port}`, clusterId }
    const random = new SeededRandom(options.seed ?? name.length + port + name.charCodeAt(0))
    const runtime: Runtime = { ...createMemoryRuntime({ log: this.log, random }), clock, network }
    this.metrics = runtime.metrics
    this.peers = createPeerNetwork({
      runtime, limits, log: this.log, identity: this.identity, secret: options.secret ?? secret,
      listen: { host: name, port },
    })
    this.peers.onChange((peer, up) => this.changes.push(`${up ? '+' : '-'}${peer.node}`))
  }

  get handlers(): PeerHandlers {
    return {
      control: from => new RecordingControl(this.identity, from, this.raft, this.designChanges),
      replica: asked => asked.incarnation === shard.incarnation ? this.replica : undefined,
      indexes: asked => asked.incarnation === shard.incarnation ? this.indexes : undefined,
    }
  }

  async start(peers: readonly TestNode[] = []): Promise<this> {
    await this.peers.start(this.handlers)
    this.peers.setPeers(peers.map(peer => peer.identity.address))
    return this
  }

  remote(node: TestNode): ShardReplica { return this.peers.replica(node.identity.node, shard) }

  remoteIndexes(node: TestNode): IndexReplica { return this.peers.indexes(node.identity.node, shard) }

  /** Returns the value of a metric with the given name and label values. */
  async metric(name: string, ...labels: readonly string[]): Promise<number> {
    const samples = await this.metrics.samples()
    return samples.find(sample =>
      sample.name === name && labels.every(label => Object.values(sample.labels).includes(label)))?.value ?? 0
  }

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

  /** Starts two nodes, of which the first dials the second. */
  async pair(options: Partial<TestNodeOptions> = {}): Promise<readonly [TestNode, TestNode]> {
    const a = this.node('a', options)
    const b = this.node('b', options)
    await b.start()
    await a.start([b])
    await this.settle()
    return [a, b]
  }

  /** Runs all work that does not wait for the clock. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 6; turn++) await this.clock.advance(0)
  }

  /** Advances the clock until the work is done. */
  async during<Result>(work: Promise<Result>): Promise<Result> {
    let done = false
    void work.finally(() => { done = true }).catch(() => {})
    while (!done) await this.clock.advance(10)
    return work
  }

  /** Stops all nodes and returns the open connections and pending timers, of which there should be none. */
  async stop(): Promise<{ readonly connections: number; readonly timers: number }> {
    await this.during(Promise.all(this.nodes.map(node => node.peers.stop())))
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
