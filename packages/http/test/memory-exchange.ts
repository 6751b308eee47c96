/** One request and its answer without a socket. */
import type { HttpBodyWriter, HttpExchange, HttpHandler, HttpHeaders } from '@sectional/runtime'
import { BodyTooLargeError } from '@sectional/runtime'

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly bytes: Buffer
  readonly text: string
  /** The body as JSON, or undefined when it is none. */
  readonly json: any
  /** The handler broke the connection. */
  readonly aborted: boolean
  /** Sent in pieces. */
  readonly chunks: number
}

export interface Sent {
  readonly headers?: Readonly<Record<string, string>>
  /** Text and bytes go as they are; anything else as JSON with its content type. */
  readonly body?: unknown
  readonly signal?: AbortSignal
  readonly encrypted?: boolean
  /** Send the body without Content-Length. */
  readonly chunked?: boolean
}

export function inject(handler: HttpHandler, method: string, target: string, sent: Sent = {}): Promise<Answer> {
  return new Promise(resolve => {
    // A client hears of the answer a turn later, when the handler has let go of the request.
    handler(new MemoryExchange(method, target, sent, answer => { setImmediate(() => { resolve(answer) }) }))
  })
}

class MemoryExchange implements HttpExchange {
  readonly method: string
  readonly target: string
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly remoteAddress = '127.0.0.1'
  readonly encrypted: boolean
  readonly signal: AbortSignal
  headersSent = false
  readonly #body: Buffer
  readonly #done: (answer: Answer) => void

  constructor(method: string, target: string, sent: Sent, done: (answer: Answer) => void) {
    this.method = method
    this.target = target
    this.encrypted = sent.encrypted ?? false
    this.signal = sent.signal ?? new AbortController().signal
    this.#done = done
    const headers: Record<string, string> = { host: 'node.example:5984' }
    this.#body = bodyBytes(sent.body, headers)
    for (const [name, value] of Object.entries(sent.headers ?? {})) headers[name.toLowerCase()] = value
    if (sent.body !== undefined) headers[sent.chunked ? 'transfer-encoding' : 'content-length'] = sent.chunked ? 'chunked' : String(this.#body.length)
    this.headers = headers
  }

  async readBody(limitBytes: number): Promise<Uint8Array> {
    if (this.#body.length > limitBytes) throw new BodyTooLargeError('too large')
    return this.#body
  }

  get body(): AsyncIterable<Uint8Array> {
    const body = this.#body
    return (async function* () { for (let at = 0; at < body.length; at += 1000) yield body.subarray(at, at + 1000) })()
  }

  send(status: number, headers: HttpHeaders, body: Uint8Array | string): void {
    this.#begin()
    const bytes = Buffer.from(body as string)
    this.#finish(status, { ...headers, 'Content-Length': String(bytes.length) }, this.method === 'HEAD' ? Buffer.alloc(0) : bytes, 1, false)
  }

  stream(status: number, headers: HttpHeaders): HttpBodyWriter {
    this.#begin()
    const chunks: Buffer[] = []
    return {
      write: async chunk => { chunks.push(Buffer.from(chunk as string)) },
      end: () => this.#finish(status, headers, this.method === 'HEAD' ? Buffer.alloc(0) : Buffer.concat(chunks), chunks.length, false),
      abort: () => this.#finish(status, headers, Buffer.concat(chunks), chunks.length, true),
    }
  }

  #begin(): void {
    if (this.headersSent) throw new Error('answered twice')
    this.headersSent = true
  }

  #finish(status: number, headers: HttpHeaders, bytes: Buffer, chunks: number, aborted: boolean): void {
    const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]))
    const text = bytes.toString('utf8')
    this.#done({ status, headers: lower, bytes, text, json: asJson(text), aborted, chunks })
  }
}

function bodyBytes(body: unknown, headers: Record<string, string>): Buffer {
  if (body === undefined) return Buffer.alloc(0)
  if (typeof body === 'string' || body instanceof Uint8Array) return Buffer.from(body as string)
  headers['content-type'] = 'application/json'
  return Buffer.from(JSON.stringify(body))
}

function asJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
