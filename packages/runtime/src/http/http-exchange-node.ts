import { STATUS_CODES } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { BodyWatch } from './body-pace.ts'
import { assertBodyFits, BodyTooLargeError, BodyTooSlowError, ClientGoneError, hasBody } from './http-listener.ts'
import type { BodyPace, HttpBodyWriter, HttpExchange, HttpHeaders } from './http-listener.ts'

/**
 * Bytes of an unwanted body that are read and thrown away, so that the client sees the answer, before it is cut off.
 */
const discardedBytesMax = 16 * 1024 * 1024
/** Bodies up to this size go out in one piece with the headers. */
const mergedBytesMax = 16 * 1024
/** A client that sends nothing of its body, or takes nothing of the answer, for so long is cut off. */
export const stallMs = 300_000

/** What an exchange needs to know of its server. */
export interface ExchangeServer { readonly closing: boolean }
/** How a request came in. */
export interface Arrival {
  /** The client waits for `100 Continue` before it sends the body. */
  readonly expectsContinue: boolean
  readonly isRefused: boolean
}

/** One request on a socket. This is the hot path: what a plain GET does not use is made on demand. */
export class NodeHttpExchange implements HttpExchange {
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #server: ExchangeServer
  readonly isRefused: boolean
  bodyPace: BodyPace | null = null
  #expectsContinue: boolean
  /** The rest of the body is not waited for. */
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
    if (body.length > mergedBytesMax) {
      response.end(body)
      if (!response.writableFinished) this.#awaitDelivery()
    } else if (typeof body === 'string') response.end(body)
    // Node joins headers and body into one write only for strings; latin1 keeps every byte as it is.
    else response.end(latin1(body), 'latin1')
  }

  #awaitDelivery(): void {
    const response = this.#response
    if (response.destroyed) return
    response.socket?.setTimeout(stallMs)
    this.delivery = new Promise(resolve => { response.once('close', resolve) })
  }

  stream(status: number, headers: HttpHeaders): HttpBodyWriter {
    return new NodeHttpBodyWriter(
      this.#begin(status, headers, undefined), headers['Content-Length'] !== undefined && !this.encrypted,
    )
  }

  #begin(status: number, headers: HttpHeaders, length: number | undefined): ServerResponse {
    const response = this.#response
    if (response.headersSent) throw new Error('the response has begun already')
    const all = { ...headers } as Record<string, string | string[]>
    if (length !== undefined && hasBody(status)) all['Content-Length'] = String(length)
    // A client that was never told to continue may send its body or not: the next request could not be found.
    if (this.#expectsContinue || this.#tooSlow || this.isRefused || this.#server.closing) all['Connection'] = 'close'
    if (!this.#bodyTaken) this.#discardBody()
    // Whoever read it has given up; the next request comes behind it.
    else if (this.#chunks !== undefined && !this.#request.complete) {
      void this.#chunks.return().then(() => this.#discardBody(), () => {})
    }
    // With the text, or a status that was tried before keeps its own.
    return response.writeHead(status, STATUS_CODES[status], all)
  }

  #takeBody(): void {
    if (this.#bodyTaken) throw new Error('the body can be read once')
    this.#bodyTaken = true
    if (!this.#expectsContinue) return
    this.#expectsContinue = false
    this.#response.writeContinue()
  }

  /** Node reads and forgets what the handler did not read; this bounds it. */
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
  readonly #resets: boolean
  #started = false

  /**
   * @param resets break off with a reset. node-fetch 2, which PouchDB uses, waits for ever when a body of an
   * announced length is cut short by an orderly close; where chunks end early it fails, with all of them read.
   */
  constructor(response: ServerResponse, resets: boolean) {
    this.#response = response
    this.#resets = resets
    // Clients of slow feeds want the headers before the first row; a quick first chunk takes them along.
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
        if (!isTaken) response.socket?.setTimeout(0)
        if (error) closed()
        else resolve()
      })
      if (!isTaken) response.socket?.setTimeout(stallMs)
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

/** A small body is there before its request is handled: events for it would cost more than the rest of its way. */
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
    const chunks: Buffer[] = []
    let length = 0
    let discarded = 0
    const take = (chunk: Buffer): void => {
      length += chunk.length
      if (length > limitBytes) throw bodyTooLarge(limitBytes)
      admit?.(chunk.length)
      chunks.push(chunk)
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
        chunks.length = 0
        use = discard
        reject(error as Error)
      }
    })
    request.on('end', () => resolve(chunks.length === 1 ? chunks[0] as Buffer : Buffer.concat(chunks)))
    request.on('error', () => reject(new ClientGoneError()))
    request.on('close', () => { if (!request.complete) reject(new ClientGoneError()) })
  })
}

function bodyTooLarge(limitBytes: number): BodyTooLargeError {
  return new BodyTooLargeError(`the body is larger than ${limitBytes} bytes`)
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
}
