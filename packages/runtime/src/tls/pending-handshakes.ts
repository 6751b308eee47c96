import type { Socket } from 'node:net'
import { AddressGroups, clientNetwork } from '@sectional/core'

/**
 * Connections that have not finished their handshake. When there are too many, the oldest one of the address (or IPv6
 * network) with the most of them is closed, so that a client that opens many connections and sends nothing does not
 * keep others away.
 */
export class PendingHandshakes {
  readonly #max: number
  /** By the network of the client, and by all addresses and ports. */
  readonly #pending = new AddressGroups<string, Socket>()

  constructor(max: number) {
    this.#max = max
  }

  get count(): number {
    return this.#pending.size
  }

  /** @param socket the TCP socket */
  begin(socket: Socket): void {
    const { remoteAddress } = socket
    // The client is gone already, so the connection cannot be told from others of the kind.
    if (remoteAddress === undefined) return void socket.destroy()
    const network = clientNetwork(remoteAddress)
    const ends = endsOf(socket)
    // The client has ended an earlier connection of the same addresses, which the process does not know yet.
    this.#pending.delete(network, ends)
    this.#pending.add(network, ends, socket)
    // Another socket may have the same addresses and ports by then.
    socket.once('close', () => {
      if (this.#pending.get(network, ends) === socket) this.#pending.delete(network, ends)
    })
    if (this.#pending.size > this.#max) this.#pending.takeFromLargest()?.destroy()
  }

  /** @param socket the TCP socket, or the TLS socket over it */
  done(socket: Socket): void {
    this.#pending.delete(clientNetwork(socket.remoteAddress ?? ''), endsOf(socket))
  }

  /** Closes all of them. */
  end(): void {
    for (let socket = this.#pending.takeFromLargest(); socket; socket = this.#pending.takeFromLargest()) {
      socket.destroy()
    }
  }
}

/** A client may use one port for connections to several addresses of this machine. */
function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`
}
