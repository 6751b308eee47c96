import { MemoryHttpExchange, ResponseCutError } from './http-exchange-memory.ts'
import type { InjectedRequest, InjectedResponse } from './http-exchange-memory.ts'
import type { Clock } from '../clock/clock.ts'
import type { HttpAddress, HttpHandler, HttpListener, HttpServer } from './http-listener.ts'

const firstFreePort = 30000

/** A response that was read to its end. */
export interface WholeResponse {
  readonly status: number
  readonly headers: InjectedResponse['headers']
  readonly body: Uint8Array
}

/** An HTTP listener without sockets: tests and the simulator inject requests. */
export class MemoryHttpListener implements HttpListener {
  readonly #clock: Clock | undefined
  readonly #servers = new Map<number, MemoryHttpServer>()
  /** Servers whose requests may still run, including servers that are closing. */
  readonly #live = new Set<MemoryHttpServer>()
  #nextPort = firstFreePort
  #revoked = false

  /** @param clock measures the grace time of `close`; without a clock, `close` waits until the running requests end */
  constructor(clock?: Clock) {
    this.#clock = clock
  }

  async listen(address: HttpAddress, handler: HttpHandler): Promise<HttpServer> {
    if (this.#revoked) throw new Error('the listener was revoked')
    const port = address.port === 0 ? this.#nextPort++ : address.port
    if (this.#servers.has(port)) {
      const cause = Object.assign(new Error('it is in use'), { code: 'EADDRINUSE' })
      throw new Error(`${address.host}:${port} cannot be bound: ${cause.message}`, { cause })
    }
    const server: MemoryHttpServer = new MemoryHttpServer({ ...address, port }, handler, this.#clock, () => {
      // A later server may have the port while the requests of this one end.
      if (this.#servers.get(port) === server) this.#servers.delete(port)
    })
    this.#servers.set(port, server)
    this.#live.add(server)
    return {
      address: server.address,
      close: async graceMs => {
        await server.close(graceMs)
        this.#live.delete(server)
      },
    }
  }

  /** Clients in memory take every answer. */
  endStalled(_countMax?: number): boolean {
    return false
  }

  /**
   * Sends a request and resolves with the head of the response.
   * @param port the server's port; the first listening server when absent
   * @throws ResponseCutError when no server listens, or the connection breaks
   */
  async open(request: InjectedRequest, port?: number): Promise<InjectedResponse> {
    const server = port === undefined ? this.#servers.values().next().value : this.#servers.get(port)
    if (server === undefined) throw new ResponseCutError('nobody listens')
    return await server.serve(request)
  }

  /** Sends a request and reads the response to its end. */
  async inject(request: InjectedRequest, port?: number): Promise<WholeResponse> {
    const { status, headers, chunks } = await this.open(request, port)
    const parts: Uint8Array[] = []
    for await (const chunk of chunks) parts.push(chunk)
    return { status, headers, body: new Uint8Array(Buffer.concat(parts)) }
  }

  /** Closes every server and connection at once. */
  revoke(): void {
    this.#revoked = true
    for (const server of this.#live) server.cut()
    this.#live.clear()
  }
}

class MemoryHttpServer implements HttpServer {
  readonly address: HttpAddress
  readonly #handler: HttpHandler
  readonly #clock: Clock | undefined
  readonly #unbind: () => void
  readonly #running = new Set<MemoryHttpExchange>()

  constructor(
    address: HttpAddress, handler: HttpHandler, clock: Clock | undefined, unbind: () => void,
  ) {
    this.address = address
    this.#handler = handler
    this.#clock = clock
    this.#unbind = unbind
  }

  serve(request: InjectedRequest): Promise<InjectedResponse> {
    if (request.signal?.aborted === true) return Promise.reject(new ResponseCutError('the client went away'))
    const exchange = new MemoryHttpExchange(request, this.address.encrypted)
    this.#running.add(exchange)
    void exchange.ended.then(() => this.#running.delete(exchange))
    queueMicrotask(() => this.#handler(exchange))
    return exchange.response
  }

  async close(graceMs: number): Promise<void> {
    this.#unbind()
    if (graceMs <= 0) return this.cut()
    const timer = this.#clock?.setTimer(graceMs, () => this.cut())
    await Promise.all([...this.#running].map(exchange => exchange.ended))
    timer?.cancel()
  }

  cut(): void {
    this.#unbind()
    for (const exchange of [...this.#running]) exchange.cut('the server is gone')
  }
}
