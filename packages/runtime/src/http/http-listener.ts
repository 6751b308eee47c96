/** The HTTP server as the `http` package sees it: real sockets in production, injected requests in tests and the simulator. */
export interface HttpListener {
  listen(address: { readonly host: string; readonly port: number }, handler: HttpHandler): Promise<HttpServer>
}

export interface HttpServer {
  readonly address: { readonly host: string; readonly port: number }
  /** Stops accepting, lets running requests finish for at most `graceMs`, then cuts them. */
  close(graceMs: number): Promise<void>
}

export type HttpHandler = (exchange: HttpExchange) => void

/** One request and its response. */
export interface HttpExchange {
  readonly method: string
  /** The raw request target: path and query, undecoded. */
  readonly target: string
  /** Lower-case names; repeated headers joined as node:http does. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly remoteAddress: string
  readonly encrypted: boolean
  /** Aborts when the client goes away before the response is complete. */
  readonly signal: AbortSignal
  /**
   * The whole body, not decompressed.
   * @throws BodyTooLargeError as soon as more than `limitBytes` arrived or were announced
   */
  readBody(limitBytes: number): Promise<Uint8Array>
  /** The body as chunks with back-pressure; either this or `readBody`, once. */
  readonly body: AsyncIterable<Uint8Array>
  /** A whole response at once; sets Content-Length. A HEAD response sends no body but its length. */
  send(status: number, headers: HttpHeaders, body: Uint8Array | string): void
  /** A chunked response. */
  stream(status: number, headers: HttpHeaders): HttpBodyWriter
  readonly headersSent: boolean
}

export type HttpHeaders = Record<string, string | readonly string[]>

export interface HttpBodyWriter {
  /** Resolves when more may be written; rejects when the client is gone. */
  write(chunk: Uint8Array | string): Promise<void>
  end(): void
  /** Breaks the connection so that the client sees a truncated body. */
  abort(): void
}

export class BodyTooLargeError extends Error {
  override readonly name = 'BodyTooLargeError'
}
