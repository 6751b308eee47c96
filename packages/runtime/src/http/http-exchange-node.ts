import { STATUS_CODES } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { asBuffer } from '@sectional/core'
import { BodyWatch } from './body-pace.ts'
import { BodyPieces } from './body-pieces.ts'
import { assertBodyFits, BodyTooLargeError, BodyTooSlowError, ClientGoneError, hasBody } from './http-listener.ts'
import type { BodyPace, HttpBodyWriter, HttpExchange, HttpHeaders } from './http-listener.ts'
import type { StalledAnswers } from './stalled-answers.ts'
import type { UpgradeRequests } from './upgrade-requests.ts'

/**
 * The number of bytes of an unread request body that are received and discarded, so that the client can read the
 * response before the connection is closed.
 */
const discardedBytesMax = 16 * 1024 * 1024
/** Response bodies up to this size are sent in one piece with the headers. */
const mergedBytesMax = 16 * 1024
/**
 * Milliseconds after which a connection is closed when the client sends nothing of its request body, or reads nothing
 * of the response.
 */
export const stallMs = 300_000

/** The part of its server that an exchange uses. */
export interface ExchangeServer {
  readonly closing: boolean
  readonly stalled: StalledAnswers
  readonly upgrades: UpgradeRequests
}
/** How a request arrived. */
export interface Arrival {
  /** True when the client waits for `100 Continue` before it sends the body. */
  readonly expectsContinue: boolean
  readonly isRefused: boolean
}

/** One request on a socket. This is a hot path: everything that a plain GET does not use is created on demand. */
export class NodeHttpExchange implements HttpExchange {
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #server: ExchangeServer
  readonly isRefused: boolean
  bodyPace: BodyPace | null = null
  #expectsContinue: boolean
  /** True when the body came too slowly, so the rest of it is not awaited. */
  #tooSlow = false
  #bodyTaken = false
  #chunks: AsyncGenerator<Uint8Array, void, undefined> | undefined
  #controller: AbortController | undefined
  delivery: Promise<void> | undefined

  constructor(
    request: IncomingMessage, response: ServerResponse, server: ExchangeServer, { expectsContinue, isRefused }: Arrival,
  ) {
    this.#request = request
    this.#response = response
    this.#server = server
    this.#expectsContinue = expectsContinue
    this.isRefused = isRefused
  }

  get method(): string {
    return this.#request.method as string
  }

  get target(): string {
    return this.#request.url as string
  }

  get headers(): Readonly<Record<string, string | undefined>> {
    return this.#request.headers as Record<string, string | undefined>
  }

  get remoteAddress(): string {
    return this.#request.socket.remoteAddress ?? ''
  }

  get encrypted(): boolean {
    return (this.#request.socket as TLSSocket).encrypted === true
  }

  get headersSent(): boolean {
    return this.#response.headersSent
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      const controller = this.#controller = new AbortController()
      const response = this.#response
      const ended = (): void => { if (!response.writableFinished) controller.abort(new ClientGoneError()) }
      if (response.closed || response.destroyed) ended()
      else response.once('close', ended)
    }
    return this.#controller.signal
  }

  async readBody(limitBytes: number, admit?: (bytes: number) => void): Promise<Uint8Array> {
    assertBodyFits(this.#request.headers['content-length'], limitBytes)
    this.#takeBody()
    const request = this.#request
    if (request.destroyed) throw new ClientGoneError()
    if (request.complete && !request.readableEnded) return arrivedBody(request, limitBytes, admit)
    const slow = Promise.withResolvers<never>()
    const watch = this.bodyPace === null ? undefined : new BodyWatch(this.bodyPace, () => {
      this.#tooSlow = true
      slow.reject(new BodyTooSlowError())
    })
    try {
      request.socket.setTimeout(stallMs)
      watch?.wait()
      const body = arrivingBody(request, limitBytes, bytes => {
        if (this.#tooSlow) throw new BodyTooSlowError()
        watch?.arrived(bytes)
        admit?.(bytes)
      })
      return await (watch === undefined ? body : Promise.race([body, slow.promise]))
    } finally {
      watch?.stop()
      request.socket.setTimeout(0)
    }
  }

  get body(): AsyncIterable<Uint8Array> {
    return this.#chunks = this.#iterateBody()
  }

  send(status: number, headers: HttpHeaders, body: Uint8Array | string): void {
    const response = this.#begin(status, headers, typeof body === 'string' ? Buffer.byteLength(body) : body.length)
    if (body.length > mergedBytesMax) response.end(body)
    else if (typeof body === 'string') response.end(body)
    // Node writes headers and body with one system call only when the body is a string; latin1 preserves every byte.
    else response.end(asBuffer(body).toString('latin1'), 'latin1')
    if ((response.socket?.writableLength ?? 0) > 0) this.#awaitDelivery()
  }

  #awaitDelivery(): void {
    const response = this.#response
    if (response.destroyed) return
    response.socket?.setTimeout(stallMs)
    const { stalled } = this.#server
    stalled.begin(response)
    this.delivery = new Promise(resolve => {
      response.once('close', () => { stalled.end(response); resolve() })
    })
  }

  stream(status: number, headers: HttpHeaders): HttpBodyWriter {
    return new NodeHttpBodyWriter(
      this.#begin(status, headers, undefined), this.#server.stalled,
      headers['Content-Length'] !== undefined && !this.encrypted,
    )
  }

  #begin(status: number, headers: HttpHeaders, length: number | undefined): ServerResponse {
    const response = this.#response
    if (response.headersSent) throw new Error('the response has begun already')
    const all = { ...headers } as Record<string, string | string[]>
    if (length !== undefined && hasBody(status)) all['Content-Length'] = String(length)
    // A client that never received `100 Continue` may or may not send its body, so the start of its next request is
    // unknown.
    if (this.#expectsContinue || this.#tooSlow || this.isRefused || this.#server.closing
      || this.#server.upgrades.mayHaveLostBytes(this.#request)) all['Connection'] = 'close'
    if (!this.#bodyTaken) this.#discardBody()
    // The handler stopped reading the body early. The rest must be discarded to reach the next request.
    else if (this.#chunks !== undefined && !this.#request.complete) {
      void this.#chunks.return().then(() => this.#discardBody(), () => {})
    }
    // Pass the status text, because otherwise a text that was set by an earlier attempt remains.
    return response.writeHead(status, STATUS_CODES[status], all)
  }

  #takeBody(): void {
    if (this.#bodyTaken) throw new Error('the body can be read once')
    this.#bodyTaken = true
    if (!this.#expectsContinue) return
    this.#expectsContinue = false
    this.#response.writeContinue()
  }

  /** Node reads and discards a body that the handler does not read. This limits the number of those bytes. */
  #discardBody(): void {
    const { headers } = this.#request
    if (headers['content-length'] === undefined && headers['transfer-encoding'] === undefined) return
    this.#bodyTaken = true
    let length = 0
    this.#request.on('error', () => {})
    this.#request.on('data', (chunk: Buffer) => {
      length += chunk.length
      if (length > discardedBytesMax) this.#request.destroy()
    })
  }

  async* #iterateBody(): AsyncGenerator<Uint8Array, void, undefined> {
    this.#takeBody()
    const { socket } = this.#request
    const chunks = this.#request.iterator({ destroyOnReturn: false })
    const watch = this.bodyPace === null ? undefined : new BodyWatch(this.bodyPace, () => this.#request.destroy())
    try {
      socket.setTimeout(stallMs)
      yield* watch === undefined ? chunks : watched(chunks, watch)
    } catch (error) {
      throw this.#request.complete ? error : new ClientGoneError({ cause: error })
    } finally {
      socket.setTimeout(0)
      this.#bodyTaken = this.#request.complete
    }
  }
}

async function* watched(
  chunks: AsyncIterable<Uint8Array>, watch: BodyWatch,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    watch.wait()
    for await (const chunk of chunks) {
      watch.stop()
      watch.arrived(chunk.length)
      yield chunk
      watch.wait()
    }
  } finally {
    watch.stop()
  }
}

class NodeHttpBodyWriter implements HttpBodyWriter {
  readonly #response: ServerResponse
  readonly #stalled: StalledAnswers
  readonly #resets: boolean
  #started = false

  /**
   * @param resets whether `abort` resets the connection. node-fetch 2, which PouchDB uses, waits forever when an
   * orderly close cuts off a body of an announced length. With chunked encoding it detects a missing end itself, after
   * it has read all chunks.
   */
  constructor(response: ServerResponse, stalled: StalledAnswers, resets: boolean) {
    this.#response = response
    this.#stalled = stalled
    this.#resets = resets
    // Clients of slow feeds need the headers before the first row. A first chunk that is written at once is sent
    // together with the headers.
    setImmediate(() => { if (!this.#started && !response.destroyed) response.flushHeaders() })
  }

  write(chunk: Uint8Array | string): Promise<void> {
    this.#started = true
    const response = this.#response
    if (response.destroyed) return Promise.reject(new ClientGoneError())
    return new Promise((resolve, reject) => {
      const closed = (): void => reject(new ClientGoneError())
      response.once('close', closed)
      const isTaken = response.write(chunk, error => {
        response.off('close', closed)
        if (!isTaken) {
          response.socket?.setTimeout(0)
          this.#stalled.end(response)
        }
        if (error) closed()
        else resolve()
      })
      if (isTaken) return
      response.socket?.setTimeout(stallMs)
      this.#stalled.begin(response)
    })
  }

  end(): void {
    this.#started = true
    this.#response.end()
  }

  abort(): void {
    this.#started = true
    if (this.#resets) this.#response.socket?.resetAndDestroy()
    this.#response.destroy()
  }
}

/**
 * Reads a small body that is already there when its request is handled. Events for it would cost more than everything
 * else.
 */
function arrivedBody(
  request: IncomingMessage, limitBytes: number, admit: ((bytes: number) => void) | undefined,
): Uint8Array {
  const body = request.read() as Buffer | null ?? Buffer.alloc(0)
  if (body.length > limitBytes) throw bodyTooLarge(limitBytes)
  admit?.(body.length)
  return body
}

function arrivingBody(
  request: IncomingMessage, limitBytes: number, admit: ((bytes: number) => void) | undefined,
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const pieces = new BodyPieces()
    let length = 0
    let discarded = 0
    const take = (chunk: Buffer): void => {
      length += chunk.length
      if (length > limitBytes) throw bodyTooLarge(limitBytes)
      admit?.(chunk.length)
      pieces.add(chunk)
    }
    const discard = (chunk: Buffer): void => {
      discarded += chunk.length
      if (discarded > discardedBytesMax) request.destroy()
    }
    let use = take
    request.on('data', (chunk: Buffer) => {
      try {
        use(chunk)
      } catch (error) {
        pieces.clear()
        use = discard
        reject(error as Error)
      }
    })
    request.on('end', () => resolve(pieces.bytes()))
    request.on('error', () => reject(new ClientGoneError()))
    request.on('close', () => { if (!request.complete) reject(new ClientGoneError()) })
  })
}

function bodyTooLarge(limitBytes: number): BodyTooLargeError {
  return new BodyTooLargeError(`the body is larger than ${limitBytes} bytes`)
}
