import type { Clock } from '../clock/clock.ts'
import { MemoryConnection } from './connection-memory.ts'
import type { NetworkFaults, Wires } from './connection-memory.ts'
import { defaultMaxFrameBytes, formatAddress } from './network.ts'
import type { Connection, Network, NetworkAddress, NetworkListener } from './network.ts'

const firstFreePort = 20000

export interface MemoryNetworkOptions {
  /** Measures delays and the timeouts of connection attempts; without a clock there are no delays and no timeouts. */
  readonly clock?: Clock
  readonly maxFrameBytes?: number
}

/** The simulated network between the nodes of one process. */
export class MemoryNetworkHub implements Wires {
  readonly clock: Clock | undefined
  readonly maxFrameBytes: number
  readonly #listeners = new Map<string, MemoryListener>()
  readonly #connections = new Set<MemoryConnection>()
  /** `from to` of each direction that carries no frames. */
  readonly #cuts = new Set<string>()
  /** Paused nodes, each with the callbacks that it receives when it is resumed. */
  readonly #paused = new Map<string, (() => void)[]>()
  #faults: NetworkFaults = {}
  #nextPort = firstFreePort

  constructor(options: MemoryNetworkOptions = {}) {
    this.clock = options.clock
    this.maxFrameBytes = options.maxFrameBytes ?? defaultMaxFrameBytes
  }

  get faults(): NetworkFaults {
    return this.#faults
  }

  setFaults(faults: NetworkFaults): void {
    this.#faults = faults
  }

  /**
   * Returns the network as the node of that name uses it.
   * @param clock measures the timeouts of the node's attempts; the hub's clock when absent
   */
  network(node: string, clock = this.clock): MemoryNetwork {
    return new MemoryNetwork(this, node, clock)
  }

  /**
   * Separates nodes of different groups, as a pulled cable does: connection attempts hang until they time out, and
   * frames wait until `heal`. With `reset`, open connections between the groups break at once.
   */
  partition(groups: readonly (readonly string[])[], options: { readonly reset?: boolean } = {}): void {
    for (const [index, group] of groups.entries()) {
      for (const other of groups.slice(index + 1)) {
        for (const a of group) for (const b of other) this.#cuts.add(direction(a, b)).add(direction(b, a))
      }
    }
    if (options.reset === true) this.kill((a, b) => this.isCut(a, b))
  }

  /** Holds back frames from the one node to the other until `heal`. The other direction is not affected. */
  cut(from: string, to: string): void {
    this.#cuts.add(direction(from, to))
  }

  /**
   * Simulates a stopped process: it receives no frames, ends or new connections, and attempts to connect to it hang.
   */
  pause(node: string): void {
    if (!this.#paused.has(node)) this.#paused.set(node, [])
  }

  /** Resumes a paused process, which then receives what it missed. */
  resume(node: string): void {
    const missed = this.#paused.get(node) ?? []
    this.#paused.delete(node)
    for (const callback of missed) queueMicrotask(callback)
    for (const connection of [...this.#connections]) if (connection.to === node) connection.flush()
  }

  /** Ends every partition and cut; frames that were held back are delivered. */
  heal(): void {
    this.#cuts.clear()
    for (const connection of [...this.#connections]) connection.flush()
  }

  /** Breaks the open connections whose two nodes match. */
  kill(matches: (a: string, b: string) => boolean): void {
    for (const connection of [...this.#connections]) {
      if (matches(connection.from, connection.to) || matches(connection.to, connection.from)) {
        connection.breakLink('connection reset (simulated)')
      }
    }
  }

  /**
   * Breaks the connections between `near` and `far` only at the end of `near`, as when a device between them forgets
   * them. The end of `far` stays open without effect until `far` closes it, or until it is reset after `lingerMs`.
   * Needs a clock.
   */
  sever(near: string, far: string, lingerMs: number): void {
    for (const connection of [...this.#connections]) {
      if (connection.from !== near || connection.to !== far || !connection.isOpen) continue
      const { peer } = connection
      connection.vanish('connection reset (simulated)')
      this.clock?.setTimer(lingerMs, () => peer?.breakLink('connection reset (simulated)'))
    }
  }

  /**
   * Ends the connections of a machine that loses its power, whose process is gone. The other ends stay open without
   * effect until they are closed, or until they are reset after `lingerMs`. Needs a clock.
   */
  powerOff(node: string, lingerMs: number): void {
    for (const connection of [...this.#connections]) {
      if (connection.from !== node || !connection.isOpen) continue
      const { peer } = connection
      connection.loseOwner()
      this.clock?.setTimer(lingerMs, () => peer?.breakLink('connection reset (simulated)'))
    }
  }

  /** The number of open connections; the two ends count as one. */
  get openConnections(): number {
    return [...this.#connections].filter(connection => connection.isOpen).length / 2
  }

  /** The open ends of connections of a node, with the other node and the time of the last frame. */
  endsOf(node: string): readonly Pick<MemoryConnection, 'to' | 'isOpen' | 'receivedMs' | 'bufferedBytes'>[] {
    return [...this.#connections].filter(connection => connection.from === node && connection.isOpen)
  }

  /** The open ends, as `node > other node`. */
  get openEnds(): readonly string[] {
    return [...this.#connections].filter(connection => connection.isOpen).map(({ from, to }) => `${from} > ${to}`)
  }

  isCut(from: string, to: string): boolean {
    return this.#cuts.has(direction(from, to))
  }

  isPaused(node: string): boolean {
    return this.#paused.has(node)
  }

  whenRunning(node: string, callback: () => void): void {
    const missed = this.#paused.get(node)
    if (missed === undefined) queueMicrotask(callback)
    else missed.push(callback)
  }

  /** Calls back after the transit time of a frame from the one node to the other. @internal */
  travel(from: string, to: string, callback: () => void): void {
    const delayMs = this.#faults.delayMs?.(from, to) ?? 0
    if (delayMs > 0 && this.clock !== undefined) this.clock.setTimer(delayMs, callback)
    else queueMicrotask(callback)
  }

  /** Call this when the process of a node is gone; drops the callbacks that it missed. @internal */
  leave(node: string): void {
    this.#paused.get(node)?.splice(0)
  }

  /** @internal */
  bind(node: string, address: NetworkAddress, onConnection: (connection: MemoryConnection) => void): MemoryListener {
    const port = address.port === 0 ? this.#freePort(address.host) : address.port
    const bound = { host: address.host, port }
    if (this.#listeners.has(formatAddress(bound))) {
      throw new Error(`${formatAddress(bound)} is in use: another node listens there`)
    }
    const listener = new MemoryListener(node, bound, onConnection, () => {
      this.#listeners.delete(formatAddress(bound))
    })
    this.#listeners.set(formatAddress(bound), listener)
    return listener
  }

  /** @internal */
  listenerAt(address: NetworkAddress): MemoryListener | undefined {
    return this.#listeners.get(formatAddress(address))
  }

  /** @internal */
  link(from: string, listener: MemoryListener): [MemoryConnection, MemoryConnection] {
    const near = new MemoryConnection(this, from, listener.node, formatAddress(listener.address))
    const far = new MemoryConnection(this, listener.node, from, `${from}:0`)
    near.peer = far
    far.peer = near
    this.#connections.add(near).add(far)
    return [near, far]
  }

  /** @internal */
  forget(connection: MemoryConnection): void {
    this.#connections.delete(connection)
  }

  #freePort(host: string): number {
    while (this.#listeners.has(formatAddress({ host, port: this.#nextPort }))) this.#nextPort++
    return this.#nextPort++
  }
}

export class MemoryNetwork implements Network {
  readonly #hub: MemoryNetworkHub
  readonly #node: string
  readonly #clock: Clock | undefined
  readonly #listeners = new Set<MemoryListener>()
  readonly #connections = new Set<MemoryConnection>()
  readonly #attempts = new Set<(error: Error) => void>()
  #revoked = false

  constructor(hub: MemoryNetworkHub, node: string, clock: Clock | undefined) {
    this.#hub = hub
    this.#node = node
    this.#clock = clock
  }

  async listen(address: NetworkAddress, onConnection: (connection: Connection) => void): Promise<NetworkListener> {
    this.#assertUsable()
    const listener = this.#hub.bind(this.#node, address, connection => {
      this.#keep(connection)
      onConnection(connection)
    })
    this.#listeners.add(listener)
    return listener
  }

  connect(
    address: NetworkAddress, options: { readonly timeoutMs: number; readonly signal?: AbortSignal },
  ): Promise<Connection> {
    return new Promise((resolve, reject) => {
      this.#assertUsable()
      options.signal?.throwIfAborted()
      const finish = (act: () => void): void => {
        timer?.cancel()
        options.signal?.removeEventListener('abort', abort)
        if (this.#attempts.delete(fail)) act()
      }
      let begun: MemoryConnection | undefined
      const giveUp = (): void => begun?.abandon('the attempt was given up')
      const fail = (error: Error): void => finish(() => { giveUp(); reject(error) })
      const abort = (): void => fail(new Error(`connecting to ${formatAddress(address)} was aborted`))
      const timer = this.#clock?.setTimer(
        options.timeoutMs,
        () => fail(new Error(`${formatAddress(address)} did not answer within ${options.timeoutMs} ms`)),
      )
      options.signal?.addEventListener('abort', abort, { once: true })
      this.#attempts.add(fail)
      this.#dial(address, fail, connection => {
        begun = connection
        if (!this.#attempts.has(fail)) giveUp()
      }, connection => finish(() => resolve(connection)))
    })
  }

  /**
   * @param onBegun called when the listener has accepted the connection
   * @param onOpen called when this node has heard of that
   */
  #dial(
    address: NetworkAddress, fail: (error: Error) => void, onBegun: (connection: MemoryConnection) => void,
    onOpen: (connection: MemoryConnection) => void,
  ): void {
    const hub = this.#hub
    const to = hub.listenerAt(address)?.node ?? address.host
    hub.travel(this.#node, to, () => {
      const listener = hub.listenerAt(address)
      const cut = hub.isCut(this.#node, to) || hub.isCut(to, this.#node)
      if (cut || hub.isPaused(to)) {
        if (this.#clock === undefined) fail(new Error(`${formatAddress(address)} is cut off (simulated)`))
        return
      }
      if (listener === undefined) {
        return hub.whenRunning(this.#node, () => fail(new Error(`nobody listens at ${formatAddress(address)}`)))
      }
      const [near, far] = hub.link(this.#node, listener)
      this.#keep(near)
      listener.onConnection(far)
      onBegun(near)
      hub.travel(to, this.#node, () => hub.whenRunning(this.#node, () => onOpen(near)))
    })
  }

  /** Simulates the end of the process: listeners and connections end, and their owner receives no callbacks. */
  revoke(): void {
    this.#revoked = true
    for (const fail of [...this.#attempts]) fail(new Error('the network was revoked'))
    for (const listener of this.#listeners) listener.stop()
    for (const connection of [...this.#connections]) connection.abandon('the process at the other end is gone')
    this.#listeners.clear()
    this.#connections.clear()
    this.#hub.leave(this.#node)
  }

  #keep(connection: MemoryConnection): void {
    this.#connections.add(connection)
    connection.onEnd = () => { this.#connections.delete(connection) }
  }

  #assertUsable(): void {
    if (this.#revoked) throw new Error('the network was revoked')
  }
}

class MemoryListener implements NetworkListener {
  readonly node: string
  readonly address: NetworkAddress
  readonly onConnection: (connection: MemoryConnection) => void
  readonly #unbind: () => void

  constructor(
    node: string, address: NetworkAddress, onConnection: (connection: MemoryConnection) => void, unbind: () => void,
  ) {
    this.node = node
    this.address = address
    this.onConnection = onConnection
    this.#unbind = unbind
  }

  stop(): void {
    this.#unbind()
  }

  async close(): Promise<void> {
    this.stop()
  }
}

function direction(from: string, to: string): string {
  return `${from} ${to}`
}
