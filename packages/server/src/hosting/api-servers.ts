/** The listeners of the HTTP API, which move when the addresses in the settings change. */
import type { HttpAddress, HttpHandler, HttpListener, HttpServer, Log } from '@sectional/runtime'

export interface ApiServersParts {
  readonly http: HttpListener
  readonly handler: HttpHandler
  /** Milliseconds that running requests may take to finish when their listener is closed. */
  readonly graceMs: number
  /** Ends the open feeds, which would last until the end of the grace time. */
  readonly endFeeds: () => void
  readonly log: Log
  /** Called when the node cannot listen any more. */
  readonly onLost: (error: Error) => void
}

interface Move { readonly old: HttpServer; readonly to: HttpAddress }

export class ApiServers {
  readonly #parts: ApiServersParts
  #servers: readonly HttpServer[] = []
  /** Each of these has a connection or ends within a moment, so the limit of connections is theirs, too. */
  readonly #closing = new Set<Promise<void>>()
  #moving: Promise<void> = Promise.resolve()
  #closed = false

  constructor(parts: ApiServersParts) {
    this.#parts = parts
  }

  /** In the order of the addresses that were passed to `open`. */
  get addresses(): readonly HttpServer['address'][] {
    return this.#servers.map(({ address }) => address)
  }

  /** @throws Error when an address cannot be bound; nothing is open then */
  async open(addresses: readonly HttpAddress[]): Promise<void> {
    this.#servers = await this.#listen(addresses)
  }

  /**
   * Listens on these addresses instead of the present ones, and resolves when it does. Port 0 stands for any port.
   * Requests that came to the earlier addresses are finished. A call must not begin before the last one has ended.
   *
   * @throws Error when an address cannot be bound; the present ones stay open then
   */
  move(addresses: readonly HttpAddress[]): Promise<void> {
    const moves = this.#servers.map((old, index) => ({ old, to: addresses[index]! }))
      .filter(({ old: { address }, to }) => address.host !== to.host || ![0, address.port].includes(to.port))
    if (this.#closed || moves.length === 0) return Promise.resolve()
    const moved = this.#move(moves)
    this.#moving = moved.catch(() => undefined)
    return moved
  }

  /** Resolves when the running requests have ended. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#moving
    this.#retire(this.#servers)
    await Promise.all(this.#closing)
  }

  async #move(moves: readonly Move[]): Promise<void> {
    const { log } = this.#parts
    try {
      const opened = await this.#listen(moves.map(({ to }) => to)).catch((error: Error) => this.#exchange(moves, error))
      this.#replace(moves, opened)
    } catch (error) {
      log.error({ reason: (error as Error).message }, 'a changed address cannot be used; the present one stays in use')
      throw error
    }
    const [http, https] = this.addresses
    log.info({ http, ...https && { https } }, 'listening')
  }

  /**
   * Opens the new servers after the old ones have stopped accepting, if one of these may have the port of a new one,
   * for instance when 127.0.0.1 is changed to 0.0.0.0. Connections are refused for an instant.
   *
   * @param error that of the attempt to open them before
   */
  async #exchange(moves: readonly Move[], error: Error): Promise<readonly HttpServer[]> {
    const before = moves.map(({ old, to }) => ({ ...to, ...old.address }))
    const inUse = (error.cause as NodeJS.ErrnoException | undefined)?.code === 'EADDRINUSE'
    if (!inUse || !moves.some(({ to }) => before.some(({ port }) => port === to.port))) throw error
    this.#retire(moves.map(({ old }) => old))
    try {
      return await this.#listen(moves.map(({ to }) => to))
    } catch (failure) {
      const restored = this.#listen(before)
      restored.catch(this.#parts.onLost)
      this.#replace(moves, await restored)
      throw failure
    }
  }

  async #listen(addresses: readonly HttpAddress[]): Promise<readonly HttpServer[]> {
    const { http, handler } = this.#parts
    const opened: HttpServer[] = []
    try {
      for (const address of addresses) opened.push(await http.listen(address, handler))
      return opened
    } catch (error) {
      await Promise.all(opened.map(server => server.close(0)))
      throw error
    }
  }

  #replace(moves: readonly Move[], opened: readonly HttpServer[]): void {
    this.#servers = this.#servers.map(server => opened[moves.findIndex(({ old }) => old === server)] ?? server)
    this.#retire(moves.map(({ old }) => old))
  }

  /** Lets servers stop accepting. Those that have stopped go on with it. */
  #retire(servers: readonly HttpServer[]): void {
    for (const server of servers) {
      const closed = server.close(this.#parts.graceMs).finally(() => this.#closing.delete(closed))
      this.#closing.add(closed)
    }
    this.#parts.endFeeds()
  }
}
