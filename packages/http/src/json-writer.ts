/**
 * A JSON answer written piece by piece. Short ones leave as one response with a Content-Length, so that an
 * error before `chunkBytes` still becomes a proper error answer; longer ones become a chunked stream.
 */
import { asBuffer, documentFrame, type SplicedDocument } from '@sectional/core'
import type { HttpBodyWriter, HttpHeaders } from '@sectional/runtime'
import { openStream, send } from './response.ts'
import type { RequestContext } from './request-context.ts'
import type { Services } from './services.ts'

const initialBytes = 4 * 1024
const chunkBytes = 64 * 1024
const noBytes = Buffer.alloc(0)

export class JsonWriter {
  readonly #request: RequestContext
  readonly #services: Services
  readonly #status: number
  readonly #headers: HttpHeaders
  #buffer: Buffer = Buffer.allocUnsafe(initialBytes)
  #length = 0
  #stream: HttpBodyWriter | null = null

  constructor(request: RequestContext, services: Services, status: number, headers: HttpHeaders) {
    this.#request = request
    this.#services = services
    this.#status = status
    this.#headers = headers
  }

  text(text: string): void {
    this.#ensure(text.length * 3)
    this.#length += this.#buffer.write(text, this.#length)
  }

  bytes(bytes: Uint8Array): void {
    this.#ensure(bytes.length)
    this.#buffer.set(bytes, this.#length)
    this.#length += bytes.length
  }

  /** @param before text in front of the document, `after` behind it: each `text` costs as much as some hundred bytes */
  document(document: SplicedDocument, before = '', after = ''): void {
    const { head, tail } = documentFrame(document)
    const { body } = document
    this.text(before + head)
    this.#ensure(body.length)
    this.#length += asBuffer(body).copy(this.#buffer, this.#length, 1, body.length - 1)
    this.text(tail + after)
  }

  /** To be awaited between rows: sends a full chunk and waits for the client to take it. */
  flushFull(): Promise<void> | undefined {
    return this.#length < chunkBytes ? undefined : this.#flush(Buffer.allocUnsafe(chunkBytes + initialBytes))
  }

  /** Sends what there is, and holds nothing until more is written. */
  async flush(): Promise<void> {
    if (this.#length === 0) return
    await this.#flush(noBytes)
  }

  async end(): Promise<void> {
    if (this.#stream === null) {
      send(this.#request, this.#services, this.#status, this.#headers, this.#buffer.subarray(0, this.#length))
      return
    }
    if (this.#length > 0) await this.#flush(noBytes)
    this.#stream.end()
    this.#request.writer = null
  }

  async #flush(next: Buffer): Promise<void> {
    this.#stream ??= openStream(this.#request, this.#services, this.#status, this.#headers)
    const chunk = this.#buffer.subarray(0, this.#length)
    this.#buffer = next
    this.#length = 0
    await this.#stream.write(chunk)
  }

  #ensure(bytes: number): void {
    const needed = this.#length + bytes
    if (needed <= this.#buffer.length) return
    // A feed that waited writes a row now and then: a small piece of Node's pool will do.
    const grown = Buffer.allocUnsafe(Math.max(needed, Math.min(this.#buffer.length * 4, chunkBytes + initialBytes)))
    grown.set(this.#buffer.subarray(0, this.#length))
    this.#buffer = grown
  }
}

/** Headers alone, for HEAD on an answer that would be written piece by piece. */
export function endHead(request: RequestContext, services: Services, headers: HttpHeaders): void {
  openStream(request, services, 200, headers).end()
  request.writer = null
}
