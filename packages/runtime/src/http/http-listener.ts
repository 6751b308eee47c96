/**
 * The HTTP server that the `http` package uses: real sockets in production, injected requests in tests and in the
 * simulator.
 */
export interface HttpListener {
  /** @throws Error that names the address when it cannot be bound; its cause has the code of the system */
  listen(address: HttpAddress, handler: HttpHandler): Promise<HttpServer>
  /**
   * Closes connections whose clients have taken nothing of an answer for some seconds, or not all of one that was sent
   * as a whole. Call it when the node is overloaded. Returns whether there was one.
   * @param countMax how many are closed; by default as many as the listener closes at a time
   */
  endStalled(countMax?: number): boolean
}

export interface HttpAddress {
  readonly host: string
  readonly port: number
  /** Serve HTTPS here, with the certificate that the listener was created with. */
  readonly encrypted?: boolean
}

export interface HttpServer {
  readonly address: { readonly host: string; readonly port: number }
  /**
   * Stops accepting at once, so that another server may have the address. Lets running requests finish for at most
   * `graceMs`, then cuts them.
   */
  close(graceMs: number): Promise<void>
}

export type HttpHandler = (exchange: HttpExchange) => void

/** One request and its response. */
export interface HttpExchange {
  readonly method: string
  /** The raw request target: path and query, not decoded. */
  readonly target: string
  /** The header names are in lower case; repeated headers are joined as node:http does. */
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly remoteAddress: string
  readonly encrypted: boolean
  /**
   * True when the connection exceeds the server's limit. It is closed after this response; only health checks
   * get a real answer, and other requests 503.
   */
  readonly isRefused: boolean
  /**
   * The required speed of the body; set it before reading the body. With null the body may be arbitrarily slow as long
   * as bytes arrive. Bodies in memory are not measured.
   */
  bodyPace: BodyPace | null
  /** Aborts when the client closes the connection before the response is complete. */
  readonly signal: AbortSignal
  /**
   * Reads the whole body; does not decompress it.
   * @param admit called with the number of arrived bytes before they are stored; an error that it throws rejects the
   * call
   * @throws BodyTooLargeError as soon as more than `limitBytes` have arrived or were announced
   * @throws BodyTooSlowError when the body is slower than `bodyPace`; the connection is closed after the response
   * @throws ClientGoneError when the client closes the connection
   */
  readBody(limitBytes: number, admit?: (bytes: number) => void): Promise<Uint8Array>
  /**
   * The body as chunks with backpressure. Use either this or `readBody`, once, before the response begins. The
   * connection is closed when the body is slower than `bodyPace`.
   */
  readonly body: AsyncIterable<Uint8Array>
  /**
   * Sends a complete response and sets Content-Length. The headers object is not kept. A response to HEAD has the
   * Content-Length of the body but no body.
   */
  send(status: number, headers: HttpHeaders, body: Uint8Array | string): void
  /**
   * Defined after a `send` that the client has not read completely; resolves when it has, or when the connection is
   * closed.
   */
  readonly delivery: Promise<void> | undefined
  /** Begins a chunked response. */
  stream(status: number, headers: HttpHeaders): HttpBodyWriter
  readonly headersSent: boolean
}

/**
 * The minimum speed of a body. Invariant: the time spent waiting is at most `graceMs` plus one second for each
 * `bytesPerSecond` bytes that have arrived.
 */
export interface BodyPace {
  readonly graceMs: number
  readonly bytesPerSecond: number
  /** Counts the body as too slow when it aborts, unless it has arrived. Bodies in memory follow it, too. */
  readonly signal?: AbortSignal
}

export type HttpHeaders = Record<string, string | readonly string[]>

export interface HttpBodyWriter {
  /**
   * Resolves when more can be written and the chunk's memory may be reused; rejects when the client has closed the
   * connection.
   */
  write(chunk: Uint8Array | string): Promise<void>
  end(): void
  /** Breaks the connection, so that the client detects a truncated body. */
  abort(): void
}

/**
 * Whether responses of a status have a body. Statuses that never have one (RFC 9110 sections 15.3.5 and 15.4.5) get no
 * Content-Length from `send`.
 */
export function hasBody(status: number): boolean {
  return status !== 204 && status !== 304
}

/** @throws BodyTooLargeError when the Content-Length exceeds the limit */
export function assertBodyFits(contentLength: string | undefined, limitBytes: number): void {
  if (contentLength !== undefined && Number(contentLength) > limitBytes) {
    throw new BodyTooLargeError(`the body has ${contentLength} bytes, the limit is ${limitBytes}`)
  }
}

export class BodyTooLargeError extends Error {
  override readonly name = 'BodyTooLargeError'
}

export class BodyTooSlowError extends Error {
  override readonly name = 'BodyTooSlowError'
}

/** The client closed the connection before the exchange was complete. */
export class ClientGoneError extends Error {
  override readonly name = 'ClientGoneError'
  constructor(options?: { cause?: unknown }) {
    super('the client closed the connection', options)
  }
}
