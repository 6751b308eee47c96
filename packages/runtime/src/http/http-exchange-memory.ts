import { validateHeaderValue } from 'node:http'
import { assertBodyFits, BodyTooLargeError, BodyTooSlowError, ClientGoneError, hasBody } from './http-listener.ts'
import type { BodyPace, HttpBodyWriter, HttpExchange, HttpHeaders } from './http-listener.ts'

/** A writer waits while the client has more unread bytes than this. */
const unreadBytesMax = 64 * 1024

/** A request of a client in the same process. */
export interface InjectedRequest {
  readonly method?: string
  readonly target: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array | string | AsyncIterable<Uint8Array>
  readonly remoteAddress?: string
  /** The client closes the connection when this signal aborts. */
  readonly signal?: AbortSignal
}

/** The status and headers of a response, with its body. */
export interface InjectedResponse {
  readonly status: number
  /** The header names are in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  /**
   * Throws `ResponseCutError` when the connection breaks. If the caller stops reading early, the server sees a closed
   * connection.
   */
  readonly chunks: AsyncIterable<Uint8Array>
}

/** The connection broke before the response was complete. */
export class ResponseCutError extends Error {
  override readonly name = 'ResponseCutError'
}

/** One injected request with its response. */
export class MemoryHttpExchange implements HttpExchange, HttpBodyWriter {
  readonly method: string
  readonly target: string
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly remoteAddress: string
  readonly isRefused = false
  bodyPace: BodyPace | null = null
  readonly encrypted: boolean
  /** Always undefined, because the client receives the whole response at once. */
  readonly delivery = undefined
  /** Resolves with the head of the response; rejects with `ResponseCutError` when the connection breaks before it. */
  readonly response: Promise<InjectedResponse>
  /** Resolves when the exchange has ended, completely or by a broken connection. */
  readonly ended: Promise<void>
  readonly #request: InjectedRequest
  readonly #controller = new AbortController()
  readonly #unread: Uint8Array[] = []
  readonly #head = Promise.withResolvers<InjectedResponse>()
  readonly #end = Promise.withResolvers<void>()
  #unreadBytes = 0
  #bodyTaken = false
  #state: 'waiting' | 'writing' | 'complete' | 'cut' = 'waiting'
  #begun = false
  #wakeReader: (() => void) | undefined
  #waitingWriters: (() => void)[] = []

  /** @param encrypted whether the server that receives the request serves HTTPS */
  constructor(request: InjectedRequest, encrypted = false) {
    this.#request = request
    this.encrypted = encrypted
    this.method = request.method ?? 'GET'
    this.target = request.target
    this.headers = requestHeaders(request)
    this.remoteAddress = request.remoteAddress ?? '127.0.0.1'
    this.response = this.#head.promise
    this.ended = this.#end.promise
    const leave = (): void => this.cut('the client went away')
    request.signal?.addEventListener('abort', leave, { once: true })
    void this.ended.then(() => request.signal?.removeEventListener('abort', leave))
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  get headersSent(): boolean {
    return this.#begun
  }

  async readBody(limitBytes: number, admit?: (bytes: number) => void): Promise<Uint8Array> {
    assertBodyFits(this.headers['content-length'], limitBytes)
    if (this.#state === 'cut') throw new ClientGoneError()
    const chunks: Uint8Array[] = []
    let length = 0
    for await (const chunk of this.body) {
      length += chunk.length
      if (length > limitBytes) throw new BodyTooLargeError(`the body is larger than ${limitBytes} bytes`)
      admit?.(chunk.length)
      chunks.push(chunk)
    }
    return new Uint8Array(Buffer.concat(chunks))
  }

  get body(): AsyncIterable<Uint8Array> {
    return this.#iterateBody()
  }

  send(status: number, headers: HttpHeaders, body: Uint8Array | string): void {
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    this.#begin(status, hasBody(status) ? { ...headers, 'Content-Length': String(bytes.length) } : headers)
    if (bytes.length > 0) void this.write(new Uint8Array(bytes)).catch(() => {})
    this.end()
  }

  stream(status: number, headers: HttpHeaders): HttpBodyWriter {
    this.#begin(status, headers)
    return this
  }

  async write(chunk: Uint8Array | string): Promise<void> {
    if (this.#state !== 'writing') throw new ClientGoneError()
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    if (this.method === 'HEAD' || bytes.length === 0) return
    this.#unread.push(new Uint8Array(bytes))
    this.#unreadBytes += bytes.length
    this.#wakeReader?.()
    while (this.#unreadBytes > unreadBytesMax && this.#state === 'writing') {
      await new Promise<void>(resolve => { this.#waitingWriters.push(resolve) })
    }
    if (this.headersSent && this.#controller.signal.aborted) throw new ClientGoneError()
  }

  end(): void {
    if (this.#state !== 'writing') return
    this.#state = 'complete'
    this.#wake()
    this.#end.resolve()
  }

  abort(): void {
    this.cut('the server cut the response')
  }

  /** Breaks the connection, unless the exchange has ended. */
  cut(reason: string): void {
    if (this.#state === 'complete' || this.#state === 'cut') return
    this.#state = 'cut'
    this.#controller.abort(new ClientGoneError())
    this.#head.reject(new ResponseCutError(reason))
    this.#wake()
    this.#end.resolve()
  }

  #begin(status: number, headers: HttpHeaders): void {
    if (this.#begun) throw new Error('the response has begun already')
    for (const [name, value] of Object.entries(headers)) {
      for (const each of [value].flat()) validateHeaderValue(name, each)
    }
    this.#begun = true
    if (this.#state === 'cut') return
    this.#state = 'writing'
    const lowered = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
    this.#head.resolve({ status, headers: lowered, chunks: this.#readResponse() })
  }

  async* #readResponse(): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for (;;) {
        const chunk = this.#unread.shift()
        if (chunk !== undefined) {
          this.#unreadBytes -= chunk.length
          this.#wakeWriters()
          yield chunk
        } else if (this.#state === 'complete') return
        else if (this.#state === 'cut') throw new ResponseCutError('the connection broke in the middle of the response')
        else await new Promise<void>(resolve => { this.#wakeReader = resolve })
      }
    } finally {
      this.cut('the client went away')
    }
  }

  async* #iterateBody(): AsyncGenerator<Uint8Array, void, undefined> {
    if (this.#bodyTaken) throw new Error('the body can be read once')
    this.#bodyTaken = true
    const { body } = this.#request
    if (body === undefined) return
    if (typeof body === 'string') yield new Uint8Array(Buffer.from(body))
    else if (body instanceof Uint8Array) yield body
    else yield* this.#whileWanted(body)
    if (this.#state === 'cut') throw new ClientGoneError()
  }

  /** Yields the chunks of a body until the signal of its pace aborts. */
  async* #whileWanted(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
    const signal = this.bodyPace?.signal
    if (signal === undefined) return yield* body
    const tooSlow = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(new BodyTooSlowError()), { once: true })
    })
    tooSlow.catch(() => {})
    const chunks = body[Symbol.asyncIterator]()
    for (;;) {
      const next = await Promise.race([chunks.next(), tooSlow])
      if (next.done === true) return
      yield next.value
    }
  }

  #wake(): void {
    this.#wakeReader?.()
    this.#wakeWriters()
  }

  #wakeWriters(): void {
    for (const wake of this.#waitingWriters.splice(0)) wake()
  }
}

function requestHeaders({ headers = {}, body }: InjectedRequest): Record<string, string> {
  const lowered: Record<string, string> = { host: 'localhost' }
  for (const [name, value] of Object.entries(headers)) lowered[name.toLowerCase()] = value
  if (typeof body === 'string') lowered['content-length'] = String(Buffer.byteLength(body))
  else if (body instanceof Uint8Array) lowered['content-length'] = String(body.length)
  else if (body !== undefined) lowered['transfer-encoding'] = 'chunked'
  return lowered
}
