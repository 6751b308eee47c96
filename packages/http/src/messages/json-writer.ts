/**
 * Writes a JSON response piece by piece. A response of less than `chunkBytes` is sent at once with a Content-Length, so
 * that an error before that size still becomes an error response. A longer one is sent as a chunked stream.
 */
import { asBuffer, documentFrame, type SplicedDocument } from '@sectional/core'
import type { HttpBodyWriter, HttpHeaders } from '@sectional/runtime'
import { openStream, send } from './response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

/** Small enough for Node's pool: memory of its own would cost a small answer more than to grow costs a large one. */
const initialBytes = 1024
const chunkBytes = 64 * 1024
/**
 * Characters of text that are collected before they are encoded: encoding a piece costs as much as some hundred bytes
 * of it.
 */
const textMax = 4 * 1024
const noBytes = Buffer.alloc(0)

export class JsonWriter {
  readonly #request: RequestContext
  readonly #services: Services
  readonly #status: number
  #headers: HttpHeaders
  /** The ETag that `holdTag` has taken from the headers. */
  #heldTag: HttpHeaders[string] | undefined
  #buffer: Buffer = Buffer.allocUnsafe(initialBytes)
  #length = 0
  /** Text that follows the bytes of the buffer and is not encoded yet. */
  #text = ''
  #stream: HttpBodyWriter | null = null

  constructor(request: RequestContext, services: Services, status: number, headers: HttpHeaders) {
    this.#request = request
    this.#services = services
    this.#status = status
    this.#headers = headers
  }

  /** Sends the ETag only if the response is sent at once, and `withdrawTag` was not called. Call it before the rows. */
  holdTag(): void {
    const { ETag, ...others } = this.#headers
    this.#headers = others
    this.#heldTag = ETag
  }

  withdrawTag(): void {
    this.#heldTag = undefined
  }

  text(text: string): void {
    this.#text += text
    if (this.#text.length >= textMax) this.#encodeText()
  }

  bytes(bytes: Uint8Array): void {
    this.#copy(bytes, 0, bytes.length)
  }

  /**
   * Writes what a function puts into the buffer.
   *
   * @param bytesMax the most bytes that the function puts there
   * @param put receives the buffer and where to begin, and returns where it ended
   */
  put(bytesMax: number, put: (buffer: Buffer, at: number) => number): void {
    this.#encodeText()
    this.#ensure(bytesMax)
    this.#length = put(this.#buffer, this.#length)
  }

  document(document: SplicedDocument): void {
    const { head, tail } = documentFrame(document)
    this.#text += head
    this.#copy(document.body, 1, document.body.length - 1)
    this.#text += tail
  }

  /** Sends the buffer when it is full, and resolves when the client has taken it. Await it between rows. */
  flushFull(): Promise<void> | undefined {
    return this.#length + this.#text.length < chunkBytes ? undefined : this.#flush(true)
  }

  /** Sends the buffered bytes and releases the buffer. Returns undefined when there is nothing to send. */
  flush(): Promise<void> | undefined {
    return this.#length + this.#text.length > 0 ? this.#flush(false) : undefined
  }

  async end(): Promise<void> {
    this.#encodeText()
    if (this.#stream === null) {
      const headers = this.#heldTag === undefined ? this.#headers : { ...this.#headers, ETag: this.#heldTag }
      send(this.#request, this.#services, this.#status, headers, this.#buffer.subarray(0, this.#length))
      return
    }
    if (this.#length > 0) await this.#flush(false)
    this.#stream.end()
    this.#request.writer = null
  }

  /** @param again keep the buffer for the next chunk; a new buffer for each chunk would cost much garbage collection */
  async #flush(again: boolean): Promise<void> {
    this.#encodeText()
    this.#stream ??= openStream(this.#request, this.#services, this.#status, this.#headers)
    const buffer = this.#buffer
    const chunk = buffer.subarray(0, this.#length)
    this.#buffer = noBytes
    this.#length = 0
    await this.#stream.write(chunk)
    // Yield to other requests: a client that takes every chunk at once would otherwise let none of them run.
    const { turns } = this.#services.runtime
    if (again && turns.due()) await turns.next()
    if (again && this.#length === 0) this.#buffer = buffer
  }

  #copy(bytes: Uint8Array, start: number, end: number): void {
    this.#encodeText()
    this.#ensure(end - start)
    this.#length += asBuffer(bytes).copy(this.#buffer, this.#length, start, end)
  }

  #encodeText(): void {
    const text = this.#text
    if (text === '') return
    this.#text = ''
    // One UTF-16 code unit takes at most three bytes in UTF-8.
    this.#ensure(3 * text.length)
    this.#length += this.#buffer.write(text, this.#length)
  }

  #ensure(bytes: number): void {
    const needed = this.#length + bytes
    if (needed <= this.#buffer.length) return
    // Grow from a small buffer of Node's pool: a feed that waits writes only a row now and then.
    const { length } = this.#buffer
    const more = length < chunkBytes ? Math.min(length * 4, chunkBytes + initialBytes) : length * 2
    const grown = Buffer.allocUnsafe(Math.max(needed, more))
    grown.set(this.#buffer.subarray(0, this.#length))
    this.#buffer = grown
  }
}

/** Sends the headers of a streamed response to a HEAD request. */
export function endHead(request: RequestContext, services: Services, headers: HttpHeaders): void {
  openStream(request, services, 200, headers).end()
  request.writer = null
}
