import { createServer } from 'node:http'
import type { IncomingMessage, Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { WebSocket, WebSocketServer } from 'ws'
import { WebSocketConnection } from './connection-ws.ts'
import type { Connection, Network, NetworkAddress, NetworkListener, RefusedCaller } from './network.ts'
import { defaultMaxFrameBytes, formatAddress } from './network.ts'
import { certifiedNamesOf } from '../tls/certified-names.ts'
import type { TlsContext, TlsContextSource } from '../tls/tls-context.ts'
import { PendingHandshakes } from '../tls/pending-handshakes.ts'
import { refusalOf, tlsProblem } from './tls-problem.ts'

const path = '/sectional'
/** The maximum number of sockets of one listener, including those whose handshake is in progress. */
const connectionsMax = 1024
/** The maximum number of those whose handshake of TLS and WebSocket is in progress. */
const handshakesMax = 256
const handshakeMsMax = 5000
/** Milliseconds that the closing handshake may take before the socket is destroyed. */
const closeMsMax = 1000
const headerBytesMax = 8 * 1024

/** The certificate of this node, and the authorities of the cluster: one of them must have signed that of a peer. */
export type LinkTlsContext = TlsContext & { readonly ca: string }

export interface WebSocketNetworkOptions {
  readonly maxFrameBytes?: number
  /** Enables mutual TLS; without it links are not encrypted. */
  readonly tls?: TlsContextSource<LinkTlsContext>
}

/** Links between nodes as WebSockets (RFC 6455) with binary messages, over TCP or mutual TLS. */
export class WebSocketNetwork implements Network {
  readonly #tls: TlsContextSource<LinkTlsContext> | undefined
  readonly #maxFrameBytes: number
  readonly #listeners = new Set<WebSocketListener>()
  readonly #connections = new Set<WebSocketConnection>()
  readonly #attempts = new Set<(error: Error) => void>()
  #revoked = false

  constructor(options: WebSocketNetworkOptions = {}) {
    this.#tls = options.tls
    this.#maxFrameBytes = options.maxFrameBytes ?? defaultMaxFrameBytes
  }

  async listen(
    address: NetworkAddress, onConnection: (connection: Connection) => void,
    onRefused?: (caller: RefusedCaller) => void,
  ): Promise<NetworkListener> {
    this.#assertUsable()
    const server = this.#createServer()
    const handshakes = new PendingHandshakes(handshakesMax)
    server.on('connection', socket => handshakes.begin(socket))
    server.on('tlsClientError', (error, socket) => {
      const refusal = refusalOf(error, socket)
      if (refusal !== null) onRefused?.({ ...refusal, host: socket.remoteAddress ?? null })
    })
    server.maxConnections = connectionsMax
    server.headersTimeout = handshakeMsMax
    server.requestTimeout = handshakeMsMax
    server.on('request', (request, response) => {
      request.resume()
      response.writeHead(426, { Upgrade: 'websocket', Connection: 'close' }).end()
    })
    const sockets = new WebSocketServer({
      server, path, perMessageDeflate: false, maxPayload: this.#maxFrameBytes, clientTracking: false,
      closeTimeout: closeMsMax,
    } as ConstructorParameters<typeof WebSocketServer>[0])
    sockets.on('connection', (socket, request) => {
      handshakes.done(request.socket)
      const { remoteAddress = '', remotePort = 0 } = request.socket
      onConnection(this.#keep(socket, formatAddress({ host: remoteAddress, port: remotePort }), request.socket))
    })
    await bound(server, sockets, address)
    const listener = new WebSocketListener(server, { host: address.host, port: (server.address() as AddressInfo).port })
    this.#listeners.add(listener)
    return listener
  }

  #createServer(): Server {
    const tls = this.#tls
    if (tls === undefined) return createServer()
    const server = createTlsServer({
      ...tls.current, requestCert: true, rejectUnauthorized: true, handshakeTimeout: handshakeMsMax,
    })
    server.once('close', tls.onChange(() => server.setSecureContext({ ...tls.current })))
    return server
  }

  connect(
    address: NetworkAddress, options: { readonly timeoutMs: number; readonly signal?: AbortSignal },
  ): Promise<Connection> {
    return new Promise((resolve, reject) => {
      this.#assertUsable()
      options.signal?.throwIfAborted()
      const name = formatAddress(address)
      const socket = new WebSocket(`${this.#tls === undefined ? 'ws' : 'wss'}://${name}${path}`, {
        ...this.#tls?.current, perMessageDeflate: false, maxPayload: this.#maxFrameBytes,
        maxHeaderSize: headerBytesMax,
        closeTimeout: closeMsMax,
        // Masks protect proxies from scripts in browsers (RFC 6455 section 10.3). Between nodes they would only cost
        // time.
        generateMask: (mask: Buffer) => { mask.fill(0) },
      } as ConstructorParameters<typeof WebSocket>[2])
      const settle = (): boolean => {
        clearTimeout(timer)
        options.signal?.removeEventListener('abort', abort)
        return this.#attempts.delete(fail)
      }
      const fail = (error: Error): void => {
        if (!settle()) return
        socket.terminate()
        reject(error)
      }
      const abort = (): void => fail(new Error(`connecting to ${name} was aborted`))
      const timer = setTimeout(
        () => fail(new Error(`${name} did not answer within ${options.timeoutMs} ms`)), options.timeoutMs,
      )
      options.signal?.addEventListener('abort', abort, { once: true })
      this.#attempts.add(fail)
      socket.on('error', error => {
        void tlsProblem(error, address, this.#tls !== undefined).then(problem => {
          const reason = problem ?? reasonOf(error)
          fail(new Error(`${name} cannot be reached: ${reason}`, { cause: error }))
        })
      })
      let response: IncomingMessage
      socket.once('upgrade', upgraded => { response = upgraded })
      socket.on('open', () => { if (settle()) resolve(this.#keep(socket, name, response.socket)) })
    })
  }

  /** Closes listeners, connection attempts and connections at once. */
  revoke(): void {
    this.#revoked = true
    for (const fail of [...this.#attempts]) fail(new Error('the network was revoked'))
    for (const listener of this.#listeners) listener.stop()
    for (const connection of [...this.#connections]) connection.abandon('the network was revoked')
    this.#listeners.clear()
  }

  #keep(socket: WebSocket, remoteAddress: string, wire: Socket): WebSocketConnection {
    const certifiedNames = this.#tls === undefined ? null : certifiedNamesOf(wire as TLSSocket)
    const connection = new WebSocketConnection(
      socket, wire, { remoteAddress, certifiedNames }, this.#maxFrameBytes, ended => this.#connections.delete(ended),
    )
    this.#connections.add(connection)
    return connection
  }

  #assertUsable(): void {
    if (this.#revoked) throw new Error('the network was revoked')
  }
}

class WebSocketListener implements NetworkListener {
  readonly address: NetworkAddress
  readonly #server: Server

  constructor(server: Server, address: NetworkAddress) {
    this.#server = server
    this.address = address
  }

  /** Stops accepting and closes sockets whose handshake is not complete. Open connections continue. */
  stop(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  async close(): Promise<void> {
    this.stop()
  }
}

function bound(server: Server, sockets: WebSocketServer, address: NetworkAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error): void =>
      reject(new Error(`${formatAddress(address)} cannot be bound: ${reasonOf(error)}`, { cause: error }))
    // The WebSocket server forwards the errors of the HTTP server, and both need a listener.
    sockets.on('error', fail)
    server.listen(address.port, address.host, resolve)
  })
}

/**
 * Returns the reason of an error. An error that combines several attempts (IPv4 and IPv6) has a code but no message.
 */
function reasonOf(error: Error): string {
  return error.message || (error as NodeJS.ErrnoException).code || error.name
}
