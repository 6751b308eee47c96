/**
 * Reads and writes documents as `multipart/related` (docs/reference/attachments.md#multipart-documents). The first part
 * is the JSON document; the following parts are the content of its attachments.
 */
import { ApiError, type AttachmentRecord, type ParsedDocument } from '@sectional/core'
import { parseDocumentBody, requestChunks } from '../messages/body.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { httpDeclarations } from '../settings/http-options.ts'
import { requestTooLarge } from '../settings/size-limits.ts'
import { followingEntries, type FollowingEntry } from './attachment-entries.ts'
import { takeAttachment } from './attachment-intake.ts'
import { boundaryOf, headerParameter, MultipartReader, type Part } from './multipart-reader.ts'

/** A document whose attachments follow in the request body. */
export class MultipartDocument {
  readonly document: ParsedDocument
  readonly #reader: MultipartReader
  readonly #request: RequestContext
  readonly #services: Services
  /** Entries whose part has not arrived yet, by attachment name. */
  readonly #awaited: Map<string, FollowingEntry>
  /**
   * Records of attachments that are already stored, by name. A part may arrive before `take` asks for its attachment.
   */
  readonly #early = new Map<string, AttachmentRecord>()

  private constructor(document: ParsedDocument, reader: MultipartReader, request: RequestContext, services: Services) {
    this.document = document
    this.#reader = reader
    this.#request = request
    this.#services = services
    const following = followingEntries(document)
    this.#awaited = new Map(following.map(entry => [entry.name, entry]))
  }

  static isOne(request: RequestContext): boolean {
    return request.header('content-type')?.toLowerCase().startsWith('multipart/related;') === true
  }

  /** @throws ApiError when the content type has no boundary, or when the first part is not JSON */
  static async open(request: RequestContext, services: Services): Promise<MultipartDocument> {
    const boundary = boundaryOf(request.header('content-type') ?? '')
    if (boundary === null) throw new ApiError('bad_request', 'multipart/related needs a boundary in its Content-Type.')
    const reader = new MultipartReader(requestChunks(request, services), boundary)
    const first = await reader.next()
    if (first === null) throw new ApiError('bad_request', 'The multipart body has no document.')
    const type = first.headers.get('content-type')?.split(';', 1)[0]?.trim().toLowerCase()
    if (type !== 'application/json') throw new ApiError('bad_content_type', 'Content-Type must be application/json')
    return new MultipartDocument(
      await parseDocumentBody(await wholePart(first, request, services), request, services), reader, request, services,
    )
  }

  /**
   * Reads parts until the attachment of `entry` is stored, and returns its record. A part belongs to the attachment
   * that its file name names. A part without the name of an awaited attachment belongs to `entry`, because clients
   * spell names in several ways. Parts of other attachments are stored as they arrive.
   */
  async take(
    id: string, entry: FollowingEntry, revposOf: (entry: FollowingEntry) => number,
  ): Promise<AttachmentRecord> {
    for (;;) {
      const early = this.#early.get(entry.name)
      if (early !== undefined) return early
      const part = await this.#reader.next()
      if (part === null) throw new ApiError('bad_request', 'attachment shorter than expected')
      const name = headerParameter(part.headers.get('content-disposition'), 'filename')
      const named = this.#awaited.get(name ?? entry.name) ?? entry
      this.#awaited.delete(named.name)
      this.#early.set(
        named.name,
        await takeAttachment(id, { ...named, revpos: revposOf(named) }, part.body, this.#request, this.#services),
      )
    }
  }

  /** Reads the rest of the body. @throws ApiError when the body does not end with its closing boundary */
  finish(): Promise<void> {
    return this.#reader.finish()
  }
}

/** Reads a part into memory. @throws ApiError `too_large` above `limits/body_bytes` */
export async function wholePart(part: Part, request: RequestContext, services: Services): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of part.body) {
    bytes += chunk.length
    const limit = { bytes: services.options.bodyBytesMax, setting: httpDeclarations.bodyBytesMax.name }
    if (bytes > limit.bytes) throw requestTooLarge(bytes, limit)
    services.admission.reserveBody(request, chunk.length)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

export interface RelatedDocument {
  readonly id: string
  readonly json: Uint8Array
  /** Attachments whose content follows the JSON. */
  readonly following: Iterable<AttachmentRecord>
}

/** Returns the pieces of the body in order: bytes, and a record in each place where an attachment's content follows. */
export function relatedPieces(
  { json, following }: RelatedDocument, boundary: string,
): (Uint8Array | AttachmentRecord)[] {
  const pieces: (Uint8Array | AttachmentRecord)[] = [
    Buffer.from(`--${boundary}\r\nContent-Type: application/json\r\n\r\n`), json,
  ]
  for (const record of following) {
    const coding = record.encoding === 'gzip' ? 'Content-Encoding: gzip\r\n' : ''
    const head = [
      '', `--${boundary}`,
      `Content-Disposition: attachment; filename="${quoted(record.name)}"`,
      `Content-Type: ${headerType(record.contentType)}`,
      `Content-Length: ${record.storedLength}`,
    ].join('\r\n')
    pieces.push(Buffer.from(`${head}\r\n${coding}\r\n`), record)
  }
  pieces.push(Buffer.from(`\r\n--${boundary}--`))
  return pieces
}

export function piecesLength(pieces: readonly (Uint8Array | AttachmentRecord)[]): number {
  return pieces.reduce((sum, piece) => sum + (piece instanceof Uint8Array ? piece.length : piece.storedLength), 0)
}

export async function writePieces(
  pieces: readonly (Uint8Array | AttachmentRecord)[], id: string, write: (chunk: Uint8Array) => Promise<void>,
  request: RequestContext, services: Services,
): Promise<void> {
  for (const piece of pieces) {
    if (piece instanceof Uint8Array) await write(piece)
    else for await (const chunk of services.coordinator.readBlob(request.database, id, piece, null, request)) {
      await write(chunk)
    }
  }
}

/** Quotes a name for a header. Line breaks and quotes of a stored name must not end the header or begin another one. */
function quoted(name: string): string {
  return name.replace(/[\r\n]/g, ' ').replace(/["\\]/g, '\\$&')
}

/**
 * Returns a stored content type as a header value, or `application/octet-stream` when it is not a valid header value.
 */
export function headerType(contentType: string): string {
  return /^[\t\x20-\x7e]+$/.test(contentType) ? contentType : 'application/octet-stream'
}
