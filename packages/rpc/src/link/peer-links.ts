import type { ForeignContact, PeerIdentity, ReplicaErrorCode } from '@sectional/core'
import type { Connection, Log, RefusedCaller, Runtime } from '@sectional/runtime'
import type { SealFrames } from '../frame/frame-codec.ts'
import type { RpcLimits } from './limits.ts'
import type { RpcMetrics } from './rpc-metrics.ts'
import { Dialer } from './dialer.ts'
import type { ConnectionEnd } from './dialer.ts'
import { DialingHandshake, ListeningHandshake, nonceBytes } from './handshake.ts'
import type { Established, HandshakeOptions, HandshakeRefusal, LinkIdentity } from './handshake.ts'
import { HandshakeRun } from './handshake-run.ts'
import type { HandshakeRunOptions } from './handshake-run.ts'
import { NodeLinks } from './node-links.ts'
import { PeerLink } from './peer-link.ts'
import type { LinkService } from './peer-link.ts'
import { RefusalLog } from './refusal-log.ts'
import { RivalCheck } from './rival-check.ts'

/** Most links to one node. Normally there are at most two; more are a fault of that node. */
const maxLinksPerNode = 4

export interface PeerLinksOptions {
  readonly runtime: Runtime
  readonly log: Log
  readonly limits: RpcLimits
  readonly metrics: RpcMetrics
  readonly secret: string
  readonly sealFrames?: SealFrames | undefined
  readonly identity: LinkIdentity
  readonly service: LinkService
}

type ChangeListener = (peer: PeerIdentity, up: boolean) => void

/** All connections of one node with its peers: it dials, accepts, runs the handshakes and keeps the open links. */
export class PeerLinks {
  readonly #options: PeerLinksOptions
  readonly #refusals: RefusalLog
  readonly #rivals: RivalCheck
  readonly #dialers = new Map<string, Dialer>()
  /** The name of the node that answered last at each address. */
  readonly #nodeAt = new Map<string, string>()
  readonly #handshakes = new Set<HandshakeRun>()
  /** Those of connections that were made to this node, oldest first; at most `maxUnauthenticated`. */
  readonly #incoming = new Set<HandshakeRun>()
  readonly #nodes = new Map<string, NodeLinks>()
  readonly #announced = new Map<string, PeerIdentity>()
  readonly #listeners = new Set<ChangeListener>()
  readonly #foreignListeners = new Set<(contact: ForeignContact) => void>()
  /** The name of the member that is known at each address. */
  #names: ReadonlyMap<string, string> = new Map()
  #identity: LinkIdentity
  #openConnections = 0
  #stopped = false
  #rivalReason: string | null = null
  #onAllClosed: (() => void) | undefined

  constructor(options: PeerLinksOptions) {
    this.#options = options
    this.#identity = options.identity
    this.#refusals = new RefusalLog(options.log, options.runtime.clock)
    this.#rivals = new RivalCheck({
      limits: options.limits,
      linksOf: node => this.#nodes.get(node)?.all() ?? [],
      probe: (link, timeoutMs) => options.service.probe(link, timeoutMs),
    })
  }

  /** Returns the link for new calls to a node. */
  best(node: string): PeerLink | undefined { return this.#nodes.get(node)?.best() }

  connected(): readonly PeerIdentity[] { return [...this.#announced.values()] }

  untried(): readonly string[] {
    return [...this.#dialers].filter(([address, dialer]) =>
      !dialer.tried && !this.#linksAt(address).some(link => link.usable)).map(([address]) => address)
  }

  /**
   * The reason of a peer that refused this process because another process has a link under its name. null: no peer has
   * done so since the last link opened.
   */
  get rivalReason(): string | null { return this.#rivalReason }

  get stopped(): boolean { return this.#stopped }

  get linkCount(): number { return [...this.#nodes.values()].reduce((sum, node) => sum + node.count, 0) }

  get queuedBytes(): number { return this.#allLinks().reduce((sum, link) => sum + link.queuedBytes, 0) }

  onChange(listener: ChangeListener): () => void {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  onForeign(listener: (contact: ForeignContact) => void): () => void {
    this.#foreignListeners.add(listener)
    return () => { this.#foreignListeners.delete(listener) }
  }

  setPeers(addresses: readonly string[], names: ReadonlyMap<string, string> = new Map()): void {
    if (this.#stopped) return
    this.#names = names
    const wanted = new Set(addresses)
    wanted.delete(this.#identity.address)
    for (const [address, dialer] of [...this.#dialers]) {
      if (wanted.has(address)) continue
      this.#dialers.delete(address)
      void dialer.stop()
      for (const link of this.#linksAt(address)) link.close('the node is not a peer any more')
      this.#nodeAt.delete(address)
    }
    for (const address of wanted) {
      if (this.#dialers.has(address)) continue
      const dialer = this.#makeDialer(address)
      this.#dialers.set(address, dialer)
      dialer.dial()
    }
  }

  setIdentity({ node, address, clusterId, start }: PeerIdentity): void {
    if (this.#stopped) return
    const before = this.#identity
    this.#identity = { node, address, clusterId, instance: before.instance, ...start && { start } }
    if (node === before.node && address === before.address && clusterId === before.clusterId
      && start?.ids[0] === before.start?.ids[0]) {
      return
    }
    this.#closeAll('the identity of the node has changed', 'unreachable')
    for (const dialer of this.#dialers.values()) {
      dialer.reset()
      dialer.dial()
    }
  }

  /** Logs and counts a caller that the network has refused. */
  reportRefused({ host, cause, reason }: RefusedCaller): void {
    this.#report({ kind: cause, reason }, undefined, host === null ? {} : { remote: host })
  }

  /**
   * Takes a connection that was made to this node. When too many have not finished their handshake, the oldest one is
   * closed: a peer needs milliseconds, so the others of that age are not peers.
   */
  accept(connection: Connection): void {
    const { limits, metrics } = this.#options
    if (this.#stopped) {
      metrics.refused('busy')
      return connection.close('busy')
    }
    if (this.#incoming.size >= limits.maxUnauthenticated) {
      const [oldest] = this.#incoming
      oldest!.cancel({ kind: 'busy', reason: 'too many connections have not finished their handshake' })
    }
    const machine = new ListeningHandshake({
      ...this.#handshakeOptions(connection), accept: peer => this.#acceptIncoming(peer),
    })
    const over = (): void => { this.#incoming.delete(run) }
    const run = this.#shakeHands({
      connection, machine,
      onEstablished: established => { over(); return this.#open(connection, established, undefined) },
      onFailed: (refusal, peer) => { over(); this.#report(refusal, peer, { remote: connection.remoteAddress }) },
    })
    this.#incoming.add(run)
  }

  /** Resolves when no connection and no timer are left. */
  async stop(): Promise<void> {
    this.#stopped = true
    const attempts = [...this.#dialers.values()].map(dialer => dialer.stop())
    this.#dialers.clear()
    await this.#drain()
    this.#closeAll('this node is stopping', 'closed')
    await Promise.all(attempts)
    if (this.#openConnections > 0) await new Promise<void>(resolve => { this.#onAllClosed = resolve })
    this.#listeners.clear()
    this.#foreignListeners.clear()
  }

  /** Waits until the calls of peers have been answered, at most `drainMs`. */
  async #drain(): Promise<void> {
    const { runtime: { clock }, limits } = this.#options
    const links = this.#allLinks()
    if (links.length === 0) return
    const late = Promise.withResolvers<void>()
    const timer = clock.setTimer(limits.drainMs, () => late.resolve())
    await Promise.race([late.promise, Promise.all(links.map(link => link.drain()))])
    timer.cancel()
  }

  #makeDialer(address: string): Dialer {
    const { runtime, limits } = this.#options
    return new Dialer({
      address, limits,
      network: runtime.network,
      clock: runtime.clock,
      random: runtime.random,
      wanted: () => this.#linksAt(address).every(link => !link.usable),
      onConnection: (connection, done) => { this.#dialed(address, connection, done) },
      onFailed: (error, nextAttemptMs) => {
        const reason = error instanceof Error ? error.message : String(error)
        const fields = { address, reason, nextAttemptMs: Math.round(nextAttemptMs) }
        this.#refusals.warn(`dial ${address}: ${reason}`, fields, 'a peer cannot be reached')
      },
    })
  }

  #dialed(address: string, connection: Connection, done: (end: ConnectionEnd) => void): void {
    const { clock } = this.#options.runtime
    const machine = new DialingHandshake({
      ...this.#handshakeOptions(connection), expected: this.#names.get(address),
      accept: peer => this.#acceptDialed(peer, address),
    })
    this.#shakeHands({
      connection, machine, first: machine.hello,
      onEstablished: established => {
        const openedMs = clock.monotonic()
        this.#refusals.forget(`dial ${address}`)
        return this.#open(connection, established, () => {
          done({ lifetimeMs: clock.monotonic() - openedMs, refused: false })
        })
      },
      onFailed: (refusal, peer) => {
        this.#report(refusal, peer, { address })
        if (refusal.kind === 'self' && peer?.instance === this.#identity.instance) {
          void this.#dialers.get(address)?.stop()
        }
        done({ lifetimeMs: 0, refused: isLasting(refusal) })
      },
    })
  }

  #handshakeOptions({ certifiedNames }: Connection): HandshakeOptions {
    const { secret, runtime } = this.#options
    return { identity: this.#identity, secret, nonce: runtime.random.bytes(nonceBytes), certifiedNames }
  }

  #shakeHands(
    options: Pick<HandshakeRunOptions, 'connection' | 'machine' | 'first' | 'onEstablished' | 'onFailed'>,
  ): HandshakeRun {
    const { runtime, limits } = this.#options
    this.#openConnections++
    const run: HandshakeRun = new HandshakeRun({
      ...options,
      clock: runtime.clock,
      timeoutMs: limits.handshakeTimeoutMs,
      admit: peer => this.#rivals.admit(peer),
      onEstablished: result => { this.#handshakes.delete(run); return options.onEstablished(result) },
      onFailed: (refusal, peer) => { this.#handshakes.delete(run); options.onFailed(refusal, peer) },
      onConnectionClosed: () => { if (--this.#openConnections === 0) this.#onAllClosed?.() },
    })
    this.#handshakes.add(run)
    return run
  }

  #acceptIncoming(peer: LinkIdentity): HandshakeRefusal | null {
    const links = this.#nodes.get(peer.node)
    if (links && links.count >= maxLinksPerNode && links.identity?.instance === peer.instance) {
      return { kind: 'busy', reason: `${peer.node} has ${links.count} links to ${this.#identity.node} already` }
    }
    return null
  }

  #acceptDialed(peer: LinkIdentity, address: string): HandshakeRefusal | null {
    this.#nodeAt.set(address, peer.node)
    const linked = this.#nodes.get(peer.node)?.all().some(link => link.usable && sameIdentity(link.peer, peer))
    return linked ? { kind: 'linked', reason: `${peer.node} and ${this.#identity.node} are linked already` } : null
  }

  #open(connection: Connection, established: Established, onClosed: (() => void) | undefined): PeerLink {
    const { runtime, limits, sealFrames, metrics, service, log } = this.#options
    const { peer } = established
    for (const older of this.#nodes.get(peer.node)?.all() ?? []) {
      if (sameIdentity(older.peer, peer)) continue
      older.close(`${peer.node} came back with a new ${older.peer.instance === peer.instance ? 'identity' : 'process'}`)
    }
    const links = this.#nodes.get(peer.node) ?? new NodeLinks(this.#identity.node)
    this.#nodes.set(peer.node, links)
    const link = new PeerLink({
      connection, established, limits, sealFrames, metrics, log, service,
      dialed: onClosed !== undefined,
      clock: runtime.clock,
      onQuiet: () => { links.retireOthers() },
      onClosed: (closed, reason) => { this.#closed(closed, links, reason); onClosed?.() },
    })
    links.add(link)
    metrics.links.set(this.linkCount)
    log.info(
      {
        peer: peer.node, address: peer.address, cluster: peer.clusterId, dialed: link.dialed,
        version: established.version,
      },
      'a link opened',
    )
    this.#refusals.forget(`peer ${peer.node}`)
    this.#rivalReason = null
    if (!this.#announced.has(peer.node)) {
      this.#announce({ node: peer.node, address: peer.address, clusterId: peer.clusterId, ...peer.start
        && { start: peer.start } }, true)
    }
    links.retireOthers()
    // Its handshake had begun before the node began to stop.
    if (this.#stopped) void link.drain()
    return link
  }

  #closed(link: PeerLink, links: NodeLinks, reason: string): void {
    const { log, metrics } = this.#options
    const { node } = link.peer
    links.remove(link)
    log.info({ peer: node, dialed: link.dialed, reason }, 'a link closed')
    if (links.count === 0 && this.#nodes.get(node) === links) {
      this.#nodes.delete(node)
      const identity = this.#announced.get(node)
      if (identity) this.#announce(identity, false)
    }
    metrics.links.set(this.linkCount)
    for (const [address, dialer] of this.#dialers) {
      if (address === link.peer.address || this.#nodeAt.get(address) === node) dialer.resume()
    }
  }

  #announce(peer: PeerIdentity, up: boolean): void {
    if (up) this.#announced.set(peer.node, peer)
    else this.#announced.delete(peer.node)
    for (const listener of [...this.#listeners]) listener(peer, up)
  }

  #meetForeign({ node, address, clusterId }: LinkIdentity, dialed: string | null, claimed: boolean): void {
    for (const listener of [...this.#foreignListeners]) {
      listener({ peer: { node, address, clusterId }, dialed, claimed })
    }
  }

  #report(
    refusal: HandshakeRefusal, peer: LinkIdentity | undefined,
    where: { readonly address?: string; readonly remote?: string },
  ): void {
    const { log, metrics } = this.#options
    metrics.refused(refusal.kind)
    const fields = { ...where, peer: peer?.node, cause: refusal.kind, reason: refusal.reason }
    const self = refusal.kind === 'self' && peer?.instance === this.#identity.instance
    if (refusal.kind === 'cluster' && peer && !this.#stopped) {
      this.#meetForeign(peer, where.address ?? null, refusal.claimed ?? false)
    }
    const linked = (refusal.peerKind ?? refusal.kind) === 'linked'
    if (this.#stopped || linked || self) return log.debug(fields, 'a handshake opened no link')
    if (refusal.peerKind === 'rival' && peer) {
      this.#rivalReason = refusal.reason
      return this.#refusals.error('rival', fields, 'the cluster refuses this node: another process has its name')
    }
    // Whoever lacks the secret can claim any name, so that each of its handshakes would be a failure of its own.
    const isNamed = peer !== undefined && (refusal.kind !== 'secret' || where.address !== undefined)
    const key = isNamed
      ? `peer ${peer.node}`
      : `${refusal.kind} ${where.address ?? where.remote?.replace(/:\d+$/, '') ?? ''}`
    this.#refusals.warn(
      key, fields, refusal.kind === 'by-peer' ? 'a peer refused the handshake' : 'the handshake of a peer was refused',
    )
  }

  #linksAt(address: string): readonly PeerLink[] {
    const node = this.#nodeAt.get(address)
    return this.#allLinks().filter(link => link.peer.address === address || link.peer.node === node)
  }

  #allLinks(): readonly PeerLink[] { return [...this.#nodes.values()].flatMap(links => links.all()) }

  #closeAll(reason: string, code: ReplicaErrorCode): void {
    for (const run of [...this.#handshakes]) run.cancel({ kind: 'busy', reason })
    for (const link of this.#allLinks()) link.close(reason, code)
  }
}

/**
 * Whether a refusal lasts until an operator removes its cause. A node of another cluster does not count, because an
 * operator resolves this by emptying the node's disk, and it must then be found soon.
 */
function isLasting({ kind, peerKind }: HandshakeRefusal): boolean {
  return kind === 'by-peer'
    ? peerKind !== undefined && peerKind !== 'cluster'
    : kind !== 'cluster' && kind !== 'timeout'
}

function sameIdentity(a: LinkIdentity, b: LinkIdentity): boolean {
  return a.node === b.node && a.address === b.address && a.clusterId === b.clusterId && a.instance === b.instance
}
