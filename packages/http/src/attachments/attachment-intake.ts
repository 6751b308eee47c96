/**
 * Stores the bytes of an upload as the content of an attachment. The bytes are streamed: they are counted, hashed, and
 * compressed when the media type allows it, but are never held in memory as a whole.
 */
import { createHash } from 'node:crypto'
import { ApiError, type AttachmentRecord } from '@sectional/core'
import { CompressionError } from '@sectional/runtime'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { attachmentTooLarge } from '../settings/size-limits.ts'
import { UploadLease } from '../request/upload-lease.ts'

export interface IncomingAttachment {
  readonly name: string
  readonly contentType: string
  readonly encoding: 'identity' | 'gzip'
  readonly revpos: number
  /** Exact number of bytes that the client announced; null when it announced no length. */
  readonly length?: number | null
  /** Base64 MD5 that the received bytes must have; null or absent when the client gave none. */
  readonly digest?: string | null
}

/**
 * Stores the content of an attachment before the document that refers to it is written.
 * @throws ApiError `attachment_too_large`, `bad_request` when the length differs from the announced one, or
 * `content_md5_mismatch`; nothing is stored in these cases
 */
export async function takeAttachment(
  id: string, incoming: IncomingAttachment, chunks: AsyncIterable<Uint8Array>, request: RequestContext,
  services: Services,
): Promise<AttachmentRecord> {
  const { coordinator, options, runtime } = services
  const { name, contentType, encoding, revpos } = incoming
  const level = options.compressionLevel
  const compress = encoding === 'identity' && level > 0 && isCompressible(contentType, options.compressibleTypes)
  const received = new Meter({ hashes: !compress || typeof incoming.digest === 'string' })
  const checked = checkedChunks(id, incoming, received.measure(chunks), received, options.attachmentBytesMax)
  const stored = compress ? new Meter({ hashes: true }) : received
  const content = compress ? stored.measure(runtime.compression.gzip(checked, level)) : checked
  const { hash } = await coordinator.writeBlob(request.database, id, content, { w: request.query.quorum('w') }, request)
  request.uploads ??= new UploadLease(
    runtime.clock, (document, hashes) => coordinator.keepBlobs(request.database, document, hashes, request),
  )
  request.uploads.add(id, hash)
  const record: AttachmentRecord = {
    name, contentType, revpos, digest: stored.digest(), blob: hash, length: received.bytes,
    encoding: compress ? 'gzip' : encoding, storedLength: stored.bytes,
  }
  if (encoding === 'identity') return record
  // Measure the decoded length instead of trusting the announced one: CouchDB 3.5 announces the length of the
  // compressed bytes, so readers would receive truncated content.
  const decoded = await decodedLength(id, record, request, services)
  return decoded === null ? { ...record, encoding: 'identity' } : { ...record, length: decoded }
}

class Meter {
  /** Undefined when the digest is not needed, because hashing is the most expensive part of an upload. */
  readonly #hash: ReturnType<typeof createHash> | undefined
  #digest: string | undefined
  bytes = 0

  constructor({ hashes }: { readonly hashes: boolean }) {
    this.#hash = hashes ? createHash('md5') : undefined
  }

  async* measure(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const chunk of chunks) {
      this.bytes += chunk.length
      this.#hash?.update(chunk)
      yield chunk
    }
  }

  /** Returns the Base64 MD5. Call this only after all bytes were measured, and only on a meter that hashes. */
  digest(): string {
    return this.#digest ??= this.#hash!.digest('base64')
  }
}

async function* checkedChunks(
  id: string, { name, length, digest }: IncomingAttachment, chunks: AsyncIterable<Uint8Array>, received: Meter,
  bytesMax: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (typeof length === 'number' && length > bytesMax) throw attachmentTooLarge(id, name, length, bytesMax)
  for await (const chunk of chunks) {
    if (received.bytes > bytesMax) throw attachmentTooLarge(id, name, received.bytes, bytesMax)
    if (typeof length === 'number' && received.bytes > length) {
      throw new ApiError('bad_request', 'attachment longer than expected')
    }
    yield chunk
  }
  if (typeof length === 'number' && received.bytes < length) {
    throw new ApiError('bad_request', 'attachment shorter than expected')
  }
  if (typeof digest === 'string' && received.digest() !== digest) throw new ApiError('content_md5_mismatch')
}

/** @param types media types; the subtype may be `*` */
function isCompressible(contentType: string, types: readonly string[]): boolean {
  const type = contentType.split(';', 1)[0]!.trim().toLowerCase()
  return types.some(each => {
    const pattern = each.toLowerCase()
    return pattern.endsWith('/*') ? type.startsWith(pattern.slice(0, -1)) : pattern === type
  })
}

/**
 * Returns the decoded bytes of content that was uploaded as gzip, which has the same limit as uncompressed content.
 * Returns null when the content is not a complete gzip stream; it is then stored as it is, because decoding it would
 * fail for every reader.
 */
async function decodedLength(
  id: string, record: AttachmentRecord, request: RequestContext, services: Services,
): Promise<number | null> {
  const { coordinator, runtime, options: { attachmentBytesMax } } = services
  let bytes = 0
  try {
    const stored = coordinator.readBlob(request.database, id, record, null, request)
    for await (const chunk of runtime.compression.gunzip(stored)) {
      bytes += chunk.length
      if (bytes > attachmentBytesMax) {
        throw attachmentTooLarge(id, `${record.name}, decoded from gzip,`, bytes, attachmentBytesMax)
      }
    }
  } catch (error) {
    if (error instanceof CompressionError) return null
    throw error
  }
  return bytes
}
