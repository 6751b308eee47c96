import { assertBodyFits } from '@sectional/runtime'
import type { BodyPace, HttpBodyWriter, HttpExchange, HttpHeaders } from '@sectional/runtime'
import { singleChunk } from './single-chunk.ts'

/** What a rewrite changes in a request. */
export interface RewrittenRequest {
  readonly method: string
  /** Path and query, percent-encoded. */
  readonly target: string
  /** All headers, with names in lower case. */
  readonly headers: HttpExchange['headers']
  /** The whole body; null: the body of the original request, which was not read. */
  readonly body: Uint8Array | null
}

/** An exchange whose request was rewritten. Its response is that of the original exchange. */
export class RewrittenExchange implements HttpExchange {
  readonly method: string
  readonly target: string
  readonly headers: HttpExchange['headers']
  readonly #body: Uint8Array | null
  readonly #original: HttpExchange

  constructor(original: HttpExchange, { method, target, headers, body }: RewrittenRequest) {
    this.#original = original
    this.method = method
    this.target = target
    this.headers = headers
    this.#body = body
  }

  get remoteAddress(): string { return this.#original.remoteAddress }
  get encrypted(): boolean { return this.#original.encrypted }
  get isRefused(): boolean { return this.#original.isRefused }
  get signal(): AbortSignal { return this.#original.signal }
  get delivery(): Promise<void> | undefined { return this.#original.delivery }
  get headersSent(): boolean { return this.#original.headersSent }
  get bodyPace(): BodyPace | null { return this.#original.bodyPace }
  set bodyPace(pace: BodyPace | null) { this.#original.bodyPace = pace }

  get body(): AsyncIterable<Uint8Array> {
    return this.#body === null ? this.#original.body : singleChunk(this.#body)
  }

  async readBody(limitBytes: number, admit?: (bytes: number) => void): Promise<Uint8Array> {
    if (this.#body === null) return this.#original.readBody(limitBytes, admit)
    assertBodyFits(String(this.#body.length), limitBytes)
    admit?.(this.#body.length)
    return this.#body
  }

  send(status: number, headers: HttpHeaders, body: Uint8Array | string): void {
    this.#original.send(status, headers, body)
  }

  stream(status: number, headers: HttpHeaders): HttpBodyWriter {
    return this.#original.stream(status, headers)
  }
}
