import type {
  ControlPeer, ForeignContact, IndexReplica, PeerHandlers, PeerIdentity, PeerNetwork, RaftMessage, ShardId, ShardPeer,
  ShardReplica,
} from '@sectional/core'
import type { SimulatedNode } from '../world/simulated-node.ts'
import { roundTripIncarnation } from './round-trips.ts'
import type { RoundTrips } from './round-trips.ts'

export interface WatchedNetworkParts {
  readonly node: SimulatedNode
  readonly network: PeerNetwork
  /** Returns the replica that answers for a shard of the simulator itself; undefined: the shard is the node's. */
  readonly own: (network: WatchedNetwork, shard: ShardId, from: PeerIdentity) => ShardReplica | undefined
  /** Calls of the simulator itself on any shard or on the control of a node. */
  readonly trips: RoundTrips
  readonly report: (rule: string, text: string) => void
  readonly nowMs: () => number
  /** Returns how many connections the process has. */
  readonly openEnds: (network: WatchedNetwork) => number
}

/** The links of one process, which must keep the contract of `PeerNetwork`. */
export class WatchedNetwork implements PeerNetwork {
  readonly node: SimulatedNode
  readonly #parts: WatchedNetworkParts
  readonly #network: PeerNetwork
  #clusterId: string | null = null
  #addresses: ReadonlySet<string> = new Set()
  #stopped = false
  /** How long it took to stop; undefined: it has not stopped. */
  stopTookMs: number | undefined

  constructor(parts: WatchedNetworkParts) {
    this.#parts = parts
    this.#network = parts.network
    this.node = parts.node
    parts.network.onChange((peer, up) => { if (up) this.#checkCluster(peer) })
  }

  /** The cluster to which the node belongs as it announces it. */
  get clusterId(): string | null { return this.#clusterId }

  get stopped(): boolean { return this.#stopped }

  start(handlers: PeerHandlers): Promise<void> {
    return this.#network.start({
      control: from => this.#watched(handlers.control(from), from),
      replica: (shard, from) => {
        this.#checkRunning(`a call of a replica from ${from.node}`)
        return this.#trip(shard)?.replica ?? this.#parts.own(this, shard, from) ?? handlers.replica(shard, from)
      },
      indexes: shard => {
        this.#checkRunning('a call of an index')
        return this.#trip(shard)?.indexes ?? handlers.indexes(shard)
      },
    })
  }

  async stop(): Promise<void> {
    const startMs = this.#parts.nowMs()
    const stopped = this.#network.stop()
    this.#stopped = true
    await stopped
    const open = this.#parts.openEnds(this)
    if (open > 0) this.#report('stopping-nodes', `has ${open} connections although its links have stopped`)
    this.stopTookMs = this.#parts.nowMs() - startMs
  }

  setPeers(addresses: readonly string[], names?: ReadonlyMap<string, string>): void {
    const before = this.#addresses
    this.#addresses = new Set(addresses)
    this.#network.setPeers(addresses, names)
    const kept = this.#network.connected()
      .find(({ address }) => before.has(address) && !this.#addresses.has(address))
    if (kept) this.#report('removed-peers', `is linked with ${kept.node}, which is not a peer any more`)
  }

  setIdentity(identity: PeerIdentity): void {
    this.#clusterId = identity.clusterId
    this.#network.setIdentity(identity)
    for (const peer of this.#network.connected()) this.#checkCluster(peer)
  }

  untried(): readonly string[] { return this.#network.untried() }

  rivalReason(): string | null { return this.#network.rivalReason() }

  connected(): readonly PeerIdentity[] { return this.#network.connected() }

  onChange(listener: (peer: PeerIdentity, up: boolean) => void): () => void { return this.#network.onChange(listener) }

  onForeign(listener: (contact: ForeignContact) => void): () => void { return this.#network.onForeign(listener) }

  control(node: string): ControlPeer { return this.#network.control(node) }

  replica(node: string, shard: ShardId): ShardReplica { return this.#network.replica(node, shard) }

  indexes(node: string, shard: ShardId): IndexReplica { return this.#network.indexes(node, shard) }

  #watched(peer: ControlPeer, from: PeerIdentity): ControlPeer {
    return Object.assign(this.#parts.trips.control(this.node, peer), {
      sendRaft: (message: RaftMessage) => {
        if (this.#parts.trips.receive(message)) return
        if (message.from !== from.node || from.clusterId === null) {
          this.#report('consensus-senders', `took a message of ${message.from} from ${from.node}, which is `
            + `${from.clusterId === null ? 'no member' : 'another node'}`)
        }
        peer.sendRaft(message)
      },
    })
  }

  #trip({ incarnation }: ShardId): ShardPeer | undefined {
    return incarnation.startsWith(roundTripIncarnation) ? this.#parts.trips.served(this.node) : undefined
  }

  #checkCluster({ node, clusterId }: PeerIdentity): void {
    if (clusterId === null || this.#clusterId === null || clusterId === this.#clusterId) return
    this.#report('one-cluster', `of cluster ${this.#clusterId} is linked with ${node} of cluster ${clusterId}`)
  }

  #checkRunning(what: string): void {
    if (this.#stopped) this.#report('stopping-nodes', `accepted ${what} after it had begun to stop`)
  }

  #report(rule: string, text: string): void { this.#parts.report(rule, `${this.node.name} ${text}`) }
}
