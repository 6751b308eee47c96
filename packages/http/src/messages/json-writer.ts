/**
 * A JSON answer written piece by piece. Short ones leave as one response with a Content-Length, so that an
 * error before `chunkBytes` still becomes a proper error answer; longer ones become a chunked stream.
 */
import { asBuffer, documentFrame, type SplicedDocument } from '@sectional/core'
import type { HttpBodyWriter, HttpHeaders } from '@sectional/runtime'
import { openStream, send } from './response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

const initialBytes = 4 * 1024
const chunkBytes = 64 * 1024
/** Text waits for more up to this many characters: encoding a piece costs as much as some hundred bytes of it. */
const textMax = 4 * 1024
const noBytes = Buffer.alloc(0)

export class JsonWriter {
  readonly #request: RequestContext
  readonly #services: Services
  readonly #status: number
  readonly #headers: HttpHeaders
  #buffer: Buffer = Buffer.allocUnsafe(initialBytes)
  #length = 0
  /** What follows the bytes of the buffer. */
  #text = ''
  #stream: HttpBodyWriter | null = null

  constructor(request: RequestContext, services: Services, status: number, headers: HttpHeaders) {
    this.#request = request
    this.#services = services
    this.#status = status
    this.#headers = headers
  }

  text(text: string): void {
    this.#text += text
    if (this.#text.length >= textMax) this.#encodeText()
  }

  bytes(bytes: Uint8Array): void {
    this.#copy(bytes, 0, bytes.length)
  }

  document(document: SplicedDocument): void {
    const { head, tail } = documentFrame(document)
    this.#text += head
    this.#copy(document.body, 1, document.body.length - 1)
    this.#text += tail
  }

  /** To be awaited between rows: sends a full chunk and waits for the client to take it. */
  flushFull(): Promise<void> | undefined {
    return this.#length + this.#text.length < chunkBytes ? undefined : this.#flush(true)
  }

  /** Sends what there is, and holds nothing until more is written; undefined: there is nothing. */
  flush(): Promise<void> | undefined {
    return this.#length + this.#text.length > 0 ? this.#flush(false) : undefined
  }

  async end(): Promise<void> {
    this.#encodeText()
    if (this.#stream === null) {
      send(this.#request, this.#services, this.#status, this.#headers, this.#buffer.subarray(0, this.#length))
      return
    }
    if (this.#length > 0) await this.#flush(false)
    this.#stream.end()
    this.#request.writer = null
  }

  /** @param again use the buffer for the next chunk: a new one for each would keep the collector busy */
  async #flush(again: boolean): Promise<void> {
    this.#encodeText()
    this.#stream ??= openStream(this.#request, this.#services, this.#status, this.#headers)
    const buffer = this.#buffer
    const chunk = buffer.subarray(0, this.#length)
    this.#buffer = noBytes
    this.#length = 0
    await this.#stream.write(chunk)
    // A client that takes everything at once lets no other request in between.
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
    // Three bytes is the most that a UTF-16 unit takes in UTF-8.
    this.#ensure(3 * text.length)
    this.#length += this.#buffer.write(text, this.#length)
  }

  #ensure(bytes: number): void {
    const needed = this.#length + bytes
    if (needed <= this.#buffer.length) return
    // A feed that waited writes a row now and then: a small piece of Node's pool will do.
    const { length } = this.#buffer
    const more = length < chunkBytes ? Math.min(length * 4, chunkBytes + initialBytes) : length * 2
    const grown = Buffer.allocUnsafe(Math.max(needed, more))
    grown.set(this.#buffer.subarray(0, this.#length))
    this.#buffer = grown
  }
}

/** Headers alone, for HEAD on an answer that would be written piece by piece. */
export function endHead(request: RequestContext, services: Services, headers: HttpHeaders): void {
  openStream(request, services, 200, headers).end()
  request.writer = null
}
