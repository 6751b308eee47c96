/**
 * A double of core's `PeerNetwork` for tests in one process. `PeerHub` is the wire: it delivers after `delayMs` of the
 * given clock, and tests cut, silence and heal it. Values are copied on the way, as on a real wire. Two nodes have a
 * link when both are started, one lists the other's address, and their clusters agree or one of them has none yet.
 */
import { controlVerbs, deriveVerbs, ReplicaError, shardPeerVerbs } from '@sectional/core'
import type {
  CallContext, ControlPeer, ForeignContact, IndexReplica, PeerHandlers, PeerIdentity, PeerNetwork, RaftMessage, ShardId,
  ShardPeer, ShardReplica,
} from '@sectional/core'
import type { Clock, Timer } from '@sectional/runtime'

export interface PeerHubOptions {
  readonly clock: Clock
  /** Milliseconds of delay in one direction. Default 1. */
  readonly delayMs?: number
  /** Returns how many copies of a consensus message arrive. Default 1. */
  readonly raftCopies?: (message: RaftMessage) => number
}

interface Link {
  readonly a: MemoryPeerNetwork
  readonly b: MemoryPeerNetwork
  readonly identities: readonly [PeerIdentity, PeerIdentity]
  readonly pending: Set<() => void>
  open: boolean
}

export class PeerHub {
  readonly clock: Clock
  readonly delayMs: number
  readonly raftCopies: (message: RaftMessage) => number
  readonly #networks: MemoryPeerNetwork[] = []
  #links: Link[] = []
  readonly #cuts = new Set<string>()
  readonly #silences = new Set<string>()
  #refreshTimer: Timer | undefined

  constructor(options: PeerHubOptions) {
    this.clock = options.clock
    this.delayMs = options.delayMs ?? 1
    this.raftCopies = options.raftCopies ?? (() => 1)
  }

  /** Makes the network of one node. A restarted node needs a new one. */
  attach(identity: PeerIdentity): MemoryPeerNetwork {
    return new MemoryPeerNetwork(this, identity)
  }

  /** Breaks the link between two nodes (given by name) and keeps it broken. Calls in flight fail as `unreachable`. */
  cut(a: string, b: string): void { this.#cuts.add(pairKey(a, b)); this.#refreshNow() }

  /** Cuts every link between the two groups. */
  partition(left: readonly string[], right: readonly string[]): void {
    for (const a of left) for (const b of right) this.#cuts.add(pairKey(a, b))
    this.#refreshNow()
  }

  /** Stops all traffic between two nodes, while both still count the link as open. */
  silence(a: string, b: string): void { this.#silences.add(pairKey(a, b)) }

  /** Ends every cut and silence. */
  heal(): void { this.#cuts.clear(); this.#silences.clear(); this.scheduleRefresh() }

  silenced(a: string, b: string): boolean { return this.#silences.has(pairKey(a, b)) }

  opened(network: MemoryPeerNetwork): void { this.#networks.push(network); this.scheduleRefresh() }

  closed(network: MemoryPeerNetwork): void {
    const at = this.#networks.indexOf(network)
    if (at >= 0) this.#networks.splice(at, 1)
    this.#refreshNow()
  }

  /** Drops the links of a node whose identity changed. They open again with the new identity. */
  reshake(network: MemoryPeerNetwork): void {
    for (const link of this.#links) if (link.a === network || link.b === network) this.#closeLink(link)
    this.#links = this.#links.filter(link => link.open)
    this.scheduleRefresh()
  }

  linksOf(
    network: MemoryPeerNetwork,
  ): readonly {
    readonly peer: PeerIdentity
    readonly remote: MemoryPeerNetwork
    readonly self: PeerIdentity
    readonly link: Link
  }[] {
    return this.#links.filter(link =>
      link.open && (link.a === network || link.b === network)).map(link => link.a === network
      ? { peer: link.identities[1], remote: link.b, self: link.identities[0], link }
      : { peer: link.identities[0], remote: link.a, self: link.identities[1], link })
  }

  isBound(address: string): boolean { return this.#networks.some(network => network.identity.address === address) }

  scheduleRefresh(): void {
    if (this.#refreshTimer) return
    this.#refreshTimer = this.clock.setTimer(this.delayMs, () => { this.#refreshTimer = undefined; this.#refreshNow() })
  }

  #refreshNow(): void {
    for (const link of this.#links) if (!this.#mayLink(link.a, link.b)) this.#closeLink(link)
    this.#links = this.#links.filter(link => link.open)
    for (const [at, a] of this.#networks.entries()) {
      for (const b of this.#networks.slice(at + 1)) {
        if (this.#reaches(a, b) && !this.#clustersAgree(a, b)) {
          a.meet(b)
          b.meet(a)
        }
        if (!this.#mayLink(a, b) || this.#links.some(link => link.a === a && link.b === b)) continue
        const link: Link = { a, b, identities: [a.identity, b.identity], pending: new Set(), open: true }
        this.#links.push(link)
        a.notify(link.identities[1], true)
        b.notify(link.identities[0], true)
      }
    }
    for (const network of this.#networks) network.triedAll()
  }

  #reaches(a: MemoryPeerNetwork, b: MemoryPeerNetwork): boolean {
    if (!this.#networks.includes(a) || !this.#networks.includes(b)) return false
    if (this.#cuts.has(pairKey(a.identity.node, b.identity.node))) return false
    if (!a.wants(b.identity.address) && !b.wants(a.identity.address)) return false
    return true
  }

  #mayLink(a: MemoryPeerNetwork, b: MemoryPeerNetwork): boolean {
    return this.#reaches(a, b) && this.#clustersAgree(a, b)
  }

  #clustersAgree(a: MemoryPeerNetwork, b: MemoryPeerNetwork): boolean {
    const left = a.identity.clusterId
    const right = b.identity.clusterId
    return left === null || right === null || left === right
  }

  #closeLink(link: Link): void {
    if (!link.open) return
    link.open = false
    for (const fail of [...link.pending]) fail()
    link.a.notify(link.identities[1], false)
    link.b.notify(link.identities[0], false)
  }
}

export class MemoryPeerNetwork implements PeerNetwork {
  identity: PeerIdentity
  readonly #hub: PeerHub
  #handlers: PeerHandlers | undefined
  #peers: readonly string[] = []
  #names: ReadonlyMap<string, string> = new Map()
  readonly #foreignListeners = new Set<(contact: ForeignContact) => void>()
  readonly #tried = new Set<string>()
  readonly #listeners = new Set<(peer: PeerIdentity, up: boolean) => void>()

  constructor(hub: PeerHub, identity: PeerIdentity) {
    this.#hub = hub
    this.identity = identity
  }

  start(handlers: PeerHandlers): Promise<void> {
    if (this.#hub.isBound(this.identity.address)) {
      return Promise.reject(new Error(`address in use: ${this.identity.address}`))
    }
    this.#handlers = handlers
    this.#hub.opened(this)
    return Promise.resolve()
  }

  stop(): Promise<void> {
    this.#hub.closed(this)
    this.#handlers = undefined
    this.#listeners.clear()
    return Promise.resolve()
  }

  setPeers(addresses: readonly string[], names: ReadonlyMap<string, string> = new Map()): void {
    this.#peers = [...addresses]
    this.#names = names
    this.#hub.scheduleRefresh()
  }

  untried(): readonly string[] { return this.#peers.filter(address => !this.#tried.has(address)) }

  rivalReason(): string | null { return null }

  triedAll(): void { for (const address of this.#peers) this.#tried.add(address) }

  setIdentity(identity: PeerIdentity): void {
    const { node, address, clusterId, start } = this.identity
    this.identity = identity
    if (node !== identity.node || address !== identity.address || clusterId !== identity.clusterId
      || start?.ids[0] !== identity.start?.ids[0]) {
      this.#hub.reshake(this)
    }
  }

  connected(): readonly PeerIdentity[] { return this.#hub.linksOf(this).map(({ peer }) => peer) }

  onChange(listener: (peer: PeerIdentity, up: boolean) => void): () => void {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  onForeign(listener: (contact: ForeignContact) => void): () => void {
    this.#foreignListeners.add(listener)
    return () => { this.#foreignListeners.delete(listener) }
  }

  /** Reports a contact with a node of another cluster: each node that has the other's address dials it. */
  meet(other: MemoryPeerNetwork): void {
    const claimed = other.#names.get(this.identity.address) === this.identity.node
    const dialed = this.wants(other.identity.address) ? other.identity.address : null
    for (const listener of [...this.#foreignListeners]) listener({ peer: other.identity, dialed, claimed })
  }

  control(node: string): ControlPeer {
    return Object.assign(new RemoteControl({ network: this, node }), {
      sendRaft: (message: RaftMessage) => this.#sendRaft(node, message),
    })
  }

  replica(node: string, shard: ShardId): ShardReplica {
    return new RemoteShard({ network: this, node, shard }).replica
  }

  indexes(node: string, shard: ShardId): IndexReplica {
    return new RemoteShard({ network: this, node, shard }).indexes
  }

  wants(address: string): boolean { return this.#peers.includes(address) }

  notify(peer: PeerIdentity, up: boolean): void {
    for (const listener of [...this.#listeners]) listener(peer, up)
  }

  answering(from: PeerIdentity): ControlPeer {
    if (!this.#handlers) throw new ReplicaError('closed', `${this.identity.node} is stopped`)
    return this.#handlers.control(from)
  }

  hosted(shard: ShardId, from: PeerIdentity): ShardPeer {
    const { node } = this.identity
    const handlers = this.#handlers
    return {
      get replica() { return handlers?.replica(shard, from) ?? notHosted(node, 'the shard') },
      get indexes() { return handlers?.indexes(shard) ?? notHosted(node, 'indexes of the shard') },
    }
  }

  remote(node: string, shard: ShardId): ShardPeer {
    const to = this.#linkTo(node)
    if (!to) throw new ReplicaError('unreachable', `no link to ${node}`)
    return to.remote.hosted(shard, this.identity)
  }

  #linkTo(node: string) { return this.#hub.linksOf(this).find(({ peer }) => peer.node === node) }

  #sendRaft(node: string, message: RaftMessage): void {
    const to = this.#linkTo(node)
    if (!to || this.#hub.silenced(this.identity.node, node)) return
    const copy = structuredClone(message)
    for (let left = this.#hub.raftCopies(message); left > 0; left -= 1) {
      this.#hub.clock.setTimer(this.#hub.delayMs, () => {
        if (to.link.open) to.remote.answering(to.self).sendRaft(copy)
      })
    }
  }

  /**
   * Sends one request and its answer. Each way takes the delay; the call fails at its deadline, when it is aborted or
   * when the link breaks.
   */
  exchange<T>(
    node: string, context: CallContext,
    run: (remote: MemoryPeerNetwork, self: PeerIdentity, inner: CallContext) => Promise<T>,
  ): Promise<T> {
    const to = this.#linkTo(node)
    if (!to) return Promise.reject(new ReplicaError('unreachable', `no link to ${node}`))
    if (context.signal?.aborted) return Promise.reject(new ReplicaError('cancelled', 'cancelled'))
    const { clock, delayMs } = this.#hub
    const lost = (): boolean => this.#hub.silenced(this.identity.node, node)
    return new Promise<T>((resolve, reject) => {
      const abort = new AbortController()
      const timers: Timer[] = []
      const settle = (finish: () => void): void => {
        to.link.pending.delete(broken)
        context.signal?.removeEventListener('abort', cancelled)
        for (const timer of timers) timer.cancel()
        finish()
      }
      const fail = (error: unknown): void => settle(() => { abort.abort(); reject(error) })
      const broken = (): void => fail(new ReplicaError('unreachable', `link to ${node} broke`))
      const cancelled = (): void => fail(new ReplicaError('cancelled', 'cancelled'))
      const answer = (finish: () => void): void => {
        if (!lost()) timers.push(clock.setTimer(delayMs, () => settle(finish)))
      }
      to.link.pending.add(broken)
      context.signal?.addEventListener('abort', cancelled, { once: true })
      timers.push(clock.setTimer(
        context.timeoutMs,
        () => fail(new ReplicaError('timeout', `${node} did not answer within ${context.timeoutMs} ms`)),
      ))
      if (lost()) return
      timers.push(clock.setTimer(delayMs, () => {
        const inner: CallContext = { ...context, signal: abort.signal }
        const work = (async () => run(to.remote, to.self, inner))()
        work.then(
          value => { const copy = structuredClone(value); answer(() => resolve(copy)) },
          error => answer(() => reject(error)),
        )
      }))
    })
  }

  /** Runs a remote scan; every page is one exchange. */
  async *pages<T>(
    node: string, context: CallContext, open: (inner: CallContext) => AsyncIterable<readonly T[]>,
  ): AsyncGenerator<readonly T[]> {
    let iterator: AsyncIterator<readonly T[]> | undefined
    try {
      for (;;) {
        const page = await this.exchange(node, context, (_remote, _self, inner) => {
          iterator ??= open({ ...context, signal: inner.signal })[Symbol.asyncIterator]()
          return iterator.next()
        })
        if (page.done) return
        yield page.value
      }
    } finally {
      await iterator?.return?.()
    }
  }
}

/** The control calls of another node of the hub. Requests are copied on the way. */
const RemoteControl = deriveVerbs<typeof controlVerbs, { readonly network: MemoryPeerNetwork; readonly node: string }>(
  controlVerbs, {
    call: verb => ({ network, node }, request, context) => network.exchange(node, context, (remote, self, inner) => (
      verb.invoke(remote.answering(self), structuredClone(request), inner))),
  })

function notHosted(node: string, what: string): never {
  throw new ReplicaError('not_hosted', `${node} does not host ${what}`)
}

/** A shard on another node of the hub. Requests are copied on the way; chunks of content are not. */
const RemoteShard = deriveVerbs<typeof shardPeerVerbs, {
  readonly network: MemoryPeerNetwork
  readonly node: string
  readonly shard: ShardId
}>(shardPeerVerbs, {
  call: verb => ({ network, node, shard }, request, context) => (
    network.exchange(
      node, context,
      (remote, self, inner) => verb.invoke(remote.hosted(shard, self), structuredClone(request), inner),
    )),
  pages: verb => ({ network, node, shard }, request, context) => (
    network.pages(
      node, context, inner => verb.invoke(network.remote(node, shard), structuredClone(request), inner),
    )),
  upload: verb => ({ network, node, shard }, chunks, context) => (
    network.exchange(node, context, (remote, self, inner) => verb.invoke(remote.hosted(shard, self), chunks, inner))),
  download: verb => ({ network, node, shard }, request, context) =>
    verb.invoke(network.remote(node, shard), request, context),
})

function pairKey(a: string, b: string): string { return a < b ? `${a}|${b}` : `${b}|${a}` }
