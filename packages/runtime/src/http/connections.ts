import type { Socket } from 'node:net'

export interface ConnectionLimits {
  /** Connections whose requests are handled. */
  readonly total: number
  /** Those of them that clients of one address may hold. */
  readonly perAddress: number
}

/** Connections beyond the limit that are kept for a moment, so that health checks are answered and others get 503. */
const refusedMax = 64
const refusedMs = 2_000
/**
 * Descriptors for stores (two with up to 1,000 open files each), attachments, links to other nodes: half of all, up to
 * this.
 */
const reservedDescriptorsMax = 3_000

/**
 * What an HTTP server may hold of the descriptors of its process.
 * @param descriptors that the process may have open; null: not known
 * @param wanted the configured number of connections
 * @param addressPercent part of them that one address may hold
 */
export function connectionLimits(descriptors: number | null, wanted: number, addressPercent: number): ConnectionLimits {
  const available = descriptors === null
    ? Infinity
    : descriptors - Math.min(Math.floor(descriptors / 2), reservedDescriptorsMax) - refusedMax
  const total = Math.max(1, Math.min(wanted, available))
  return { total, perAddress: Math.max(1, Math.floor(total * addressPercent / 100)) }
}

/** Those of one address. */
interface Neighbours { readonly address: string; readonly idle: Set<Socket>; count: number }

interface Connection {
  readonly neighbours: Neighbours
  /** To be called when a request that had come in is answered: one function for all requests of the connection. */
  readonly onAnswer: () => void
  running: number
}

const noConnection = (): void => {}

/**
 * The connections of one HTTP server. At a limit the connection that has been idle for longest makes room for a new
 * one; where all are busy the new one is refused: its first request is still read, for a moment.
 */
export class Connections {
  readonly #limits: ConnectionLimits
  readonly #open = new Map<Socket, Connection>()
  /** Without a request under way, the one that is idle for longest first. */
  readonly #idle = new Set<Socket>()
  readonly #addresses = new Map<string, Neighbours>()
  /** The oldest first. */
  readonly #refused = new Set<Socket>()

  constructor(limits: ConnectionLimits) {
    this.#limits = limits
  }

  add(socket: Socket): void {
    const address = socket.remoteAddress ?? ''
    if ((this.#addresses.get(address)?.count ?? 0) >= this.#limits.perAddress
      && !this.#closeFirst(this.#addresses.get(address)!.idle)) {
      return this.#refuse(socket)
    }
    if (this.#open.size >= this.#limits.total && !this.#closeFirst(this.#idle)) return this.#refuse(socket)
    let neighbours = this.#addresses.get(address)
    if (neighbours === undefined) this.#addresses.set(address, neighbours = { address, idle: new Set(), count: 0 })
    neighbours.count++
    neighbours.idle.add(socket)
    const connection: Connection = { neighbours, running: 0, onAnswer: () => this.#end(socket, connection) }
    this.#open.set(socket, connection)
    this.#idle.add(socket)
    socket.once('close', () => this.#forget(socket))
  }

  /** Whether the connection is beyond the limits: to be closed with its first answer. */
  isRefused(socket: Socket): boolean {
    return this.#refused.size > 0 && this.#refused.has(socket)
  }

  /** A request has come in. Returns what has to be called once when it is answered. */
  begin(socket: Socket): () => void {
    const connection = this.#open.get(socket)
    if (connection === undefined) return noConnection
    if (connection.running++ === 0) {
      this.#idle.delete(socket)
      connection.neighbours.idle.delete(socket)
    }
    return connection.onAnswer
  }

  #end(socket: Socket, connection: Connection): void {
    if (--connection.running > 0 || !this.#open.has(socket)) return
    this.#idle.add(socket)
    connection.neighbours.idle.add(socket)
  }

  #closeFirst(idle: ReadonlySet<Socket>): boolean {
    for (const socket of idle) {
      this.#forget(socket)
      socket.destroy()
      return true
    }
    return false
  }

  #forget(socket: Socket): void {
    const connection = this.#open.get(socket)
    if (connection === undefined) return
    const { neighbours } = connection
    this.#open.delete(socket)
    this.#idle.delete(socket)
    neighbours.idle.delete(socket)
    if (--neighbours.count === 0) this.#addresses.delete(neighbours.address)
  }

  /** A flood of refused connections drives out those that wait for longest: who sends a request at once is answered. */
  #refuse(socket: Socket): void {
    if (this.#refused.size >= refusedMax) for (const oldest of this.#refused) {
      this.#refused.delete(oldest)
      oldest.destroy()
      break
    }
    this.#refused.add(socket)
    const timer = setTimeout(() => socket.destroy(), refusedMs)
    socket.once('close', () => {
      clearTimeout(timer)
      this.#refused.delete(socket)
    })
  }
}

/** TLS handshakes under way at once, and no more than a quarter of the connections. */
const handshakesMax = 1024

/** Connections whose TLS handshake has not ended: where there are too many, the one that takes longest is closed. */
export class PendingHandshakes {
  readonly #max: number
  /** By the far end, the oldest first. */
  readonly #pending = new Map<string, Socket>()

  constructor({ total }: ConnectionLimits) {
    this.#max = Math.min(handshakesMax, Math.ceil(total / 4))
  }

  /** @param socket of TCP */
  begin(socket: Socket): void {
    const end = farEnd(socket)
    this.#pending.set(end, socket)
    socket.once('close', () => { if (this.#pending.get(end) === socket) this.#pending.delete(end) })
    if (this.#pending.size <= this.#max) return
    for (const [at, oldest] of this.#pending) {
      this.#pending.delete(at)
      oldest.destroy()
      return
    }
  }

  /** @param socket of TLS */
  done(socket: Socket): void {
    this.#pending.delete(farEnd(socket))
  }
}

function farEnd({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}
