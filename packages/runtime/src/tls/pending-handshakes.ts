import type { Socket } from 'node:net'

/**
 * Connections that have not finished their handshake. When there are too many, the oldest one of the address with the
 * most of them is closed, so that a client that opens many connections and sends nothing does not keep others away.
 */
export class PendingHandshakes {
  readonly #max: number
  #count = 0
  /** Remote address -> remote port -> socket, oldest first. No inner map is empty. */
  readonly #pending = new Map<string, Map<number, Socket>>()

  constructor(max: number) {
    this.#max = max
  }

  get count(): number {
    return this.#count
  }

  /** @param socket the TCP socket */
  begin(socket: Socket): void {
    const { remoteAddress = '', remotePort = 0 } = socket
    const neighbours = this.#pending.get(remoteAddress) ?? new Map<number, Socket>()
    this.#pending.set(remoteAddress, neighbours.set(remotePort, socket))
    this.#count++
    socket.once('close', () => this.#forget(remoteAddress, remotePort, socket))
    if (this.#count > this.#max) this.#closeOldest()
  }

  /** @param socket the TCP socket, or the TLS socket over it */
  done({ remoteAddress = '', remotePort = 0 }: Socket): void {
    this.#forget(remoteAddress, remotePort)
  }

  /** Closes all of them. */
  end(): void {
    for (const neighbours of [...this.#pending.values()]) for (const socket of neighbours.values()) socket.destroy()
    this.#pending.clear()
    this.#count = 0
  }

  #closeOldest(): void {
    let [address, most] = ['', new Map<number, Socket>()]
    for (const [candidate, neighbours] of this.#pending) {
      if (neighbours.size > most.size) [address, most] = [candidate, neighbours]
    }
    const [port, oldest] = most.entries().next().value!
    this.#forget(address, port)
    oldest.destroy()
  }

  /** @param expected forgets nothing when another socket has the address and the port by now */
  #forget(address: string, port: number, expected?: Socket): void {
    const neighbours = this.#pending.get(address)
    const socket = neighbours?.get(port)
    if (neighbours === undefined || socket === undefined || (expected !== undefined && socket !== expected)) return
    neighbours.delete(port)
    if (neighbours.size === 0) this.#pending.delete(address)
    this.#count--
  }
}
