/** Writes `multipart/mixed` responses whose parts are documents (docs/reference/documents.md#get-dbid). */
import type { HttpBodyWriter } from '@sectional/runtime'
import { relatedPieces, writePieces, type RelatedDocument } from '../attachments/multipart-document.ts'
import { showRelated, type ReadFlags, type ShownRevision } from './document-reading.ts'
import { openStream, plainHeaders } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

/**
 * Returns whether the Accept header allows the media type: the header is absent, or it has the type itself or a range
 * with `*` that contains it, unless the type or its family has q=0. Clients that want JSON send
 * `Accept: application/json`.
 */
export function acceptsType(accept: string | undefined, type: string): boolean {
  if (accept === undefined) return true
  const family = `${type.slice(0, type.indexOf('/'))}/*`
  let isTaken = false
  for (const range of accept.split(',')) {
    const [name, ...parameters] = range.split(';').map(part => part.trim().toLowerCase())
    if (name !== type && name !== '*/*' && name !== family) continue
    const isRefused = parameters.some(parameter => /^q=0(?:\.0*)?$/.test(parameter))
    if (isRefused && name !== '*/*') return false
    isTaken ||= !isRefused
  }
  return isTaken
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

  errorPart(value: object): Promise<void> {
    return this.#part('application/json; error="true"', Buffer.from(JSON.stringify(value)))
  }

  /**
   * Writes a revision with the content of the attachments that the reader lacks. A revision with such attachments
   * becomes a nested multipart part.
   * @param headers additional header lines of a nested part, each with its line break
   */
  revisionPart(shown: ShownRevision, flags: ReadFlags, headers = ''): Promise<void> {
    const related = showRelated(shown, { ...flags, attachments: true })
    return related.following.size === 0
      ? this.#part('application/json', related.json)
      : this.#relatedPart({ id: shown.id, ...related }, headers)
  }

  async #relatedPart(document: RelatedDocument, headers: string): Promise<void> {
    if (this.#head) return
    const boundary = this.#services.uuids.random()
    await this.#writer.write(
      `--${this.#boundary}\r\n${headers}Content-Type: multipart/related; boundary="${boundary}"\r\n\r\n`,
    )
    await writePieces(
      relatedPieces(document, boundary), document.id, chunk => this.#writer.write(chunk), this.#request, this.#services,
    )
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
