import type { Socket } from 'node:net'

/**
 * Connections that have not finished their handshake. When there are too many, the oldest one of the address with the
 * most of them is closed, so that a client that opens many connections and sends nothing does not keep others away.
 */
export class PendingHandshakes {
  readonly #max: number
  #count = 0
  /** Remote address -> the other addresses and ports -> socket, oldest first. No inner map is empty. */
  readonly #pending = new Map<string, Map<string, Socket>>()

  constructor(max: number) {
    this.#max = max
  }

  get count(): number {
    return this.#count
  }

  /** @param socket the TCP socket */
  begin(socket: Socket): void {
    const { remoteAddress } = socket
    // The client is gone already, so the connection cannot be told from others of the kind.
    if (remoteAddress === undefined) return void socket.destroy()
    const ends = endsOf(socket)
    // The client has ended an earlier connection of the same addresses, which the process does not know yet.
    this.#forget(remoteAddress, ends)
    const neighbours = this.#pending.get(remoteAddress) ?? new Map<string, Socket>()
    this.#pending.set(remoteAddress, neighbours.set(ends, socket))
    this.#count++
    socket.once('close', () => this.#forget(remoteAddress, ends, socket))
    if (this.#count > this.#max) this.#closeOldest()
  }

  /** @param socket the TCP socket, or the TLS socket over it */
  done(socket: Socket): void {
    this.#forget(socket.remoteAddress ?? '', endsOf(socket))
  }

  /** Closes all of them. */
  end(): void {
    for (const neighbours of [...this.#pending.values()]) for (const socket of neighbours.values()) socket.destroy()
    this.#pending.clear()
    this.#count = 0
  }

  #closeOldest(): void {
    let [address, most] = ['', new Map<string, Socket>()]
    for (const [candidate, neighbours] of this.#pending) {
      if (neighbours.size > most.size) [address, most] = [candidate, neighbours]
    }
    const [ends, oldest] = most.entries().next().value!
    this.#forget(address, ends)
    oldest.destroy()
  }

  /** @param expected forgets nothing when another socket has the same addresses and ports by now */
  #forget(address: string, ends: string, expected?: Socket): void {
    const neighbours = this.#pending.get(address)
    const socket = neighbours?.get(ends)
    if (neighbours === undefined || socket === undefined || (expected !== undefined && socket !== expected)) return
    neighbours.delete(ends)
    if (neighbours.size === 0) this.#pending.delete(address)
    this.#count--
  }
}

/** A client may use one port for connections to several addresses of this machine. */
function endsOf({ remotePort, localAddress, localPort }: Socket): string {
  return `${remotePort} ${localAddress} ${localPort}`
}
