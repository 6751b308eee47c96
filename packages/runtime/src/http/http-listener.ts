/**
 * The HTTP server as the `http` package sees it: real sockets in production, injected requests in tests and the
 * simulator.
 */
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
  /**
   * The connection is one more than the server may have: it is closed with this answer, so that only health checks are
   * worth one.
   */
  readonly isRefused: boolean
  /**
   * How fast the body has to come, set before it is read; null: as slowly as it wants, while it comes at all. Bodies in
   * memory are not measured.
   */
  bodyPace: BodyPace | null
  /** Aborts when the client goes away before the response is complete. */
  readonly signal: AbortSignal
  /**
   * The whole body, not decompressed.
   * @param admit called for the bytes that have arrived before they are kept; what it throws is the result
   * @throws BodyTooLargeError as soon as more than `limitBytes` arrived or were announced
   * @throws BodyTooSlowError when it comes more slowly than `bodyPace`; the answer closes the connection
   * @throws ClientGoneError
   */
  readBody(limitBytes: number, admit?: (bytes: number) => void): Promise<Uint8Array>
  /**
   * The body as chunks with back-pressure; either this or `readBody`, once, before the response begins. One that comes
   * more slowly than `bodyPace` is cut off.
   */
  readonly body: AsyncIterable<Uint8Array>
  /**
   * A whole response at once. The headers' object is not kept. Sets Content-Length. A HEAD response sends no body but
   * its length.
   */
  send(status: number, headers: HttpHeaders, body: Uint8Array | string): void
  /** After a `send` of which the client has not taken everything: resolves when it has, or is gone. */
  readonly delivery: Promise<void> | undefined
  /** A chunked response. */
  stream(status: number, headers: HttpHeaders): HttpBodyWriter
  readonly headersSent: boolean
}

/** At every moment, `graceMs` and a second for each `bytesPerSecond` that have come may have passed. */
export interface BodyPace { readonly graceMs: number; readonly bytesPerSecond: number }

export type HttpHeaders = Record<string, string | readonly string[]>

export interface HttpBodyWriter {
  /** Resolves when more may be written, and the chunk's memory used again; rejects when the client is gone. */
  write(chunk: Uint8Array | string): Promise<void>
  end(): void
  /** Breaks the connection so that the client sees a truncated body. */
  abort(): void
}

/** Responses that never carry a body (RFC 9110 sections 15.3.5 and 15.4.5) get no Content-Length from `send`. */
export function hasBody(status: number): boolean {
  return status !== 204 && status !== 304
}

/** @throws BodyTooLargeError when the Content-Length says more than the limit */
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
