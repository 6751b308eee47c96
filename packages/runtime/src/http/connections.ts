import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { clientNetwork } from '@sectional/core'
import type { StalledAnswers } from './stalled-answers.ts'

export interface ConnectionLimits {
  /** The maximum number of connections whose requests are handled. */
  readonly total: number
  /** The maximum number of those that clients of one address, or of one IPv6 network, may hold. */
  readonly perAddress: number
}

/**
 * The maximum number and duration of connections beyond the limit, which are kept briefly to answer health checks, and
 * other requests with 503.
 */
const refusedMax = 64
const refusedMs = 2_000
/**
 * The maximum number of descriptors that are reserved for stores (two with up to 1,000 open files each), attachments
 * and links to other nodes. At most half of all descriptors are reserved.
 */
const reservedDescriptorsMax = 3_000

/**
 * Computes how many connections an HTTP server may hold.
 * @param descriptors the number of descriptors that the process may open; null when unknown
 * @param wanted the configured number of connections
 * @param addressPercent the percentage of them that one address may hold
 */
export function connectionLimits(descriptors: number | null, wanted: number, addressPercent: number): ConnectionLimits {
  const available = descriptors === null
    ? Infinity
    : descriptors - Math.min(Math.floor(descriptors / 2), reservedDescriptorsMax) - refusedMax
  const total = Math.max(1, Math.min(wanted, available))
  return { total, perAddress: Math.max(1, Math.floor(total * addressPercent / 100)) }
}

/** The connections of one address, or of one IPv6 network. */
interface Neighbours { readonly address: string; readonly idle: Set<Socket>; count: number }

interface Connection {
  readonly neighbours: Neighbours
  /** Call this when a request was answered. All requests of the connection share one function. */
  readonly onAnswer: () => void
  /** The number of requests in progress. Invariant: the connection is in `#idle` exactly when this is 0. */
  running: number
  /** The response to the latest request; undefined while no request is in progress. */
  latest: ServerResponse | undefined
}

const noConnection = (): void => {}

/**
 * The connections of the HTTP servers of one node. At a limit, the connection that has been idle longest is closed to
 * make room for a new one. When all connections are busy, the new one is refused: its first request is still read for a
 * moment. Connections whose clients do not take their answers are closed then, which makes room for later ones.
 */
export class Connections {
  readonly #limits: ConnectionLimits
  readonly #open = new Map<Socket, Connection>()
  /** Connections without a request in progress; the one that has been idle longest is first. */
  readonly #idle = new Set<Socket>()
  readonly #addresses = new Map<string, Neighbours>()
  /** Connections beyond the limits, oldest first. */
  readonly #refused = new Set<Socket>()

  readonly #stalled: StalledAnswers

  constructor(limits: ConnectionLimits, stalled: StalledAnswers) {
    this.#limits = limits
    this.#stalled = stalled
  }

  add(socket: Socket): void {
    const address = clientNetwork(socket.remoteAddress ?? '')
    if ((this.#addresses.get(address)?.count ?? 0) >= this.#limits.perAddress
      && !this.#closeFirst(this.#addresses.get(address)!.idle)) {
      return this.#refuse(socket)
    }
    if (this.#open.size >= this.#limits.total && !this.#closeFirst(this.#idle)) return this.#refuse(socket)
    let neighbours = this.#addresses.get(address)
    if (neighbours === undefined) this.#addresses.set(address, neighbours = { address, idle: new Set(), count: 0 })
    neighbours.count++
    neighbours.idle.add(socket)
    const connection: Connection = {
      neighbours, running: 0, latest: undefined, onAnswer: () => this.#end(socket, connection),
    }
    this.#open.set(socket, connection)
    this.#idle.add(socket)
    socket.once('close', () => this.#forget(socket))
  }

  /** Whether the connection is beyond the limits and must be closed after its first response. */
  isRefused(socket: Socket): boolean {
    return this.#refused.size > 0 && this.#refused.has(socket)
  }

  /** Call this when a request arrived. Returns the function to call once when it is answered. */
  begin(socket: Socket, response: ServerResponse): () => void {
    const connection = this.#open.get(socket)
    if (connection === undefined) return noConnection
    connection.latest = response
    if (connection.running++ === 0) {
      this.#idle.delete(socket)
      connection.neighbours.idle.delete(socket)
    }
    return connection.onAnswer
  }

  /** Returns the response to the latest request of a connection; undefined when all its requests are answered. */
  latest(socket: Duplex): ServerResponse | undefined {
    return this.#open.get(socket as Socket)?.latest
  }

  #end(socket: Socket, connection: Connection): void {
    if (--connection.running > 0) return
    connection.latest = undefined
    if (!this.#open.has(socket)) return
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

  /**
   * Keeps a connection beyond the limits for a moment. A flood of them replaces the oldest ones first, so that a client
   * that sends its request at once still receives an answer.
   */
  #refuse(socket: Socket): void {
    this.#stalled.close()
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
