/** `multipart/mixed` and `multipart/related` answers whose parts are documents (api.md A5.4, A5.7). */
import type { HttpBodyWriter } from '@sectional/runtime'
import { relatedPieces, writePieces, type RelatedDocument } from './attachments/multipart-document.ts'
import { openStream, plainHeaders } from './response.ts'
import type { RequestContext } from './request-context.ts'
import type { Services } from './services.ts'

/**
 * Whether the Accept header admits the type: an absent header, one that takes everything, and `multipart/*` do, unless with q=0.
 * Clients that want JSON send `Accept: application/json`.
 */
export function acceptsMultipart(accept: string | undefined, type: string): boolean {
  if (accept === undefined) return true
  return accept.split(',').some(range => {
    const [name, ...parameters] = range.split(';').map(part => part.trim().toLowerCase())
    if (name !== type && name !== '*/*' && name !== 'multipart/*') return false
    return !parameters.some(parameter => /^q=0(?:\.0*)?$/.test(parameter))
  })
}

export class MultipartWriter {
  readonly #request: RequestContext
  readonly #services: Services
  readonly #writer: HttpBodyWriter
  readonly #boundary: string
  readonly #head: boolean

  constructor(request: RequestContext, services: Services, type: 'multipart/mixed' | 'multipart/related') {
    this.#request = request
    this.#services = services
    this.#head = request.head
    this.#boundary = services.uuids.random()
    this.#writer = openStream(request, services, 200, {
      ...plainHeaders(request, services), 'Content-Type': `${type}; boundary="${this.#boundary}"`,
    })
  }

  documentPart(json: Uint8Array): Promise<void> {
    return this.#part('application/json', json)
  }

  errorPart(value: object): Promise<void> {
    return this.#part('application/json; error="true"', Buffer.from(JSON.stringify(value)))
  }

  /**
   * A document whose attachments follow it: a multipart part of its own.
   * @param headers lines of its head, each with its end
   */
  async relatedPart(document: RelatedDocument, headers = ''): Promise<void> {
    if (this.#head) return
    const boundary = this.#services.uuids.random()
    await this.#writer.write(`--${this.#boundary}\r\n${headers}Content-Type: multipart/related; boundary="${boundary}"\r\n\r\n`)
    await writePieces(relatedPieces(document, boundary), document.id, chunk => this.#writer.write(chunk), this.#request, this.#services)
    await this.#writer.write('\r\n')
  }

  async end(): Promise<void> {
    if (!this.#head) await this.#writer.write(`--${this.#boundary}--`)
    this.#writer.end()
    this.#request.writer = null
  }

  async #part(type: string, content: Uint8Array): Promise<void> {
    if (this.#head) return
    const opening = Buffer.from(`--${this.#boundary}\r\nContent-Type: ${type}\r\n\r\n`)
    await this.#writer.write(Buffer.concat([opening, content, Buffer.from('\r\n')]))
  }
}
