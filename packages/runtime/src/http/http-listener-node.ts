import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http'
import { createServer as createTlsServer, Server as TlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { OptionValues } from '@sectional/core/options'
import { connectionDeclarations } from './connection-options.ts'
import { connectionLimits, Connections, PendingHandshakes } from './connections.ts'
import type { ConnectionLimits } from './connections.ts'
import { NodeHttpExchange } from './http-exchange-node.ts'
import type { HttpHandler, HttpListener, HttpServer } from './http-listener.ts'

/** The limit for the request line and headers together. It is generous because query strings can contain long keys. */
const headerBytesMax = 64 * 1024
const headersMsMax = 30_000
/** Longer than the usual idle timeout of proxies, so that the proxy closes an idle connection first. */
const idleMsMax = 75_000
const probeMs = 60_000
/** The number of requests that are handled before sockets are read again. */
const requestsPerTurnMax = 64
/**
 * The maximum number of requests of one connection that wait behind the current one. A client that sends more is
 * disconnected.
 */
const pipelinedMax = 100
/** The interval in milliseconds at which connections that became idle are closed while the server is closing. */
const sweepMs = 50

/**
 * Absent options have their declared defaults, except `addressPercent`: without it, one address may hold all
 * connections.
 */
export interface NodeHttpListenerOptions extends Partial<OptionValues<typeof connectionDeclarations>> {
  /** The number of descriptors that the process may open; null when unknown. */
  readonly descriptors?: number | null
  /** In PEM format. Without it the server speaks plain HTTP. */
  readonly tls?: { readonly key: string; readonly cert: string; readonly ca?: string }
}

/** HTTP/1.1 with node:http. */
export class NodeHttpListener implements HttpListener {
  readonly #options: NodeHttpListenerOptions
  readonly #servers = new Set<NodeHttpServer>()

  constructor(options: NodeHttpListenerOptions = {}) {
    this.#options = options
  }

  async listen(address: { readonly host: string; readonly port: number }, handler: HttpHandler): Promise<HttpServer> {
    const options: ServerOptions = {
      maxHeaderSize: headerBytesMax,
      // Node would use the first of two headers and ignore the second, where a proxy may have checked the second.
      // Joined values of headers that may be sent once, such as Authorization, are malformed and therefore refused.
      joinDuplicateHeaders: true,
      headersTimeout: headersMsMax,
      // No limit, because uploads may take as long as they make progress.
      requestTimeout: 0,
      keepAliveTimeout: idleMsMax,
      keepAlive: true,
      keepAliveInitialDelay: probeMs,
    }
    const server = this.#options.tls === undefined
      ? createServer(options)
      : createTlsServer({ ...options, handshakeTimeout: headersMsMax, ...this.#options.tls })
    const listening = new NodeHttpServer(
      server, address.host, handler, this.limits, ended => this.#servers.delete(ended),
    )
    await bound(server, address)
    this.#servers.add(listening)
    return listening
  }

  /** The limits of the connections of each server. */
  get limits(): ConnectionLimits {
    const { descriptors = null, addressPercent = 100 } = this.#options
    const connectionsMax = this.#options.connectionsMax ?? connectionDeclarations.connectionsMax.default
    return connectionLimits(descriptors, connectionsMax, addressPercent)
  }

  /** Closes every server and connection at once. */
  revoke(): void {
    for (const server of [...this.#servers]) void server.close(0)
  }
}

class NodeHttpServer implements HttpServer {
  readonly #server: Server
  readonly #host: string
  readonly #handler: HttpHandler
  readonly #onEnd: (server: NodeHttpServer) => void
  readonly #connections: Connections
  #arrived: NodeHttpExchange[] = []
  readonly #pipelined = new WeakMap<Socket, number>()
  #closed: Promise<void> | undefined
  closing = false

  constructor(
    server: Server, host: string, handler: HttpHandler, limits: ConnectionLimits,
    onEnd: (server: NodeHttpServer) => void,
  ) {
    this.#server = server
    this.#host = host
    this.#handler = handler
    this.#onEnd = onEnd
    const connections = this.#connections = new Connections(limits)
    if (server instanceof TlsServer) {
      const handshakes = new PendingHandshakes(limits)
      server.on('connection', (socket: Socket) => handshakes.begin(socket))
      server.on('secureConnection', (socket: Socket) => {
        handshakes.done(socket)
        connections.add(socket)
      })
    } else {
      server.on('connection', (socket: Socket) => connections.add(socket))
    }
    server.on('request', (request, response) => this.#inTurn(request, response, false))
    server.on('checkContinue', (request, response) => this.#inTurn(request, response, true))
  }

  /**
   * Handles the requests of one connection one after the other (RFC 9112, section 9.3.2), so that a read sees a write
   * that was sent before it.
   */
  #inTurn(request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): void {
    const { socket } = request
    response.on('close', this.#connections.begin(socket))
    // Node assigns the socket to a response when it is that response's turn.
    if (response.socket !== null) return this.#arrive(request, response, expectsContinue)
    const waiting = (this.#pipelined.get(socket) ?? 0) + 1
    if (waiting > pipelinedMax) return void socket.destroy()
    this.#pipelined.set(socket, waiting)
    response.once('socket', () => {
      this.#pipelined.set(socket, this.#pipelined.get(socket)! - 1)
      this.#arrive(request, response, expectsContinue)
    })
  }

  /**
   * Collects the requests that arrive in one turn of the event loop and handles them together afterwards. At 64
   * connections this takes a third less CPU per request than handling them between the reads from the sockets, which
   * displace the handler's code from the CPU cache.
   */
  #arrive(request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): void {
    const waiting = this.#arrived.push(new NodeHttpExchange(request, response, this, {
      expectsContinue, isRefused: this.#connections.isRefused(request.socket),
    }))
    if (waiting === 1) setImmediate(() => this.#handleArrived())
  }

  #handleArrived(): void {
    const exchanges = this.#arrived.splice(0, requestsPerTurnMax)
    if (this.#arrived.length > 0) setImmediate(() => this.#handleArrived())
    for (const exchange of exchanges) this.#handler(exchange)
  }

  get address(): { readonly host: string; readonly port: number } {
    return { host: this.#host, port: (this.#server.address() as AddressInfo | null)?.port ?? 0 }
  }

  close(graceMs: number): Promise<void> {
    this.#closed ??= this.#close(graceMs)
    return this.#closed
  }

  async #close(graceMs: number): Promise<void> {
    this.closing = true
    const ended = new Promise<void>(resolve => { this.#server.close(() => resolve()) })
    if (graceMs <= 0) this.#server.closeAllConnections()
    const cut = setTimeout(() => this.#server.closeAllConnections(), graceMs)
    const sweep = setInterval(() => this.#server.closeIdleConnections(), sweepMs)
    await ended
    clearTimeout(cut)
    clearInterval(sweep)
    this.#onEnd(this)
  }
}

function bound(server: Server, address: { readonly host: string; readonly port: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(new Error(`${address.host}:${address.port} cannot be bound: ${error.message}`, { cause: error }))
    })
    server.listen(address.port, address.host, resolve)
  })
}
