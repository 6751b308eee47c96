/**
 * From the bytes of an upload to stored content: counted, hashed, compressed where its type says so, never held as a
 * whole.
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
  /** Bytes that must come; null: any number. */
  readonly length?: number | null
  /** Base64 MD5 of the bytes that must come. */
  readonly digest?: string | null
}

/**
 * Stores the content for a document that is written next.
 * @throws ApiError `attachment_too_large`, `bad_request` for another length, `content_md5_mismatch`; nothing stays
 * behind then
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
  // Announced lengths are not taken: CouchDB 3.5 announces that of the compressed bytes, and readers would be cut off
  // by it.
  const decoded = await decodedLength(id, record, request, services)
  return decoded === null ? { ...record, encoding: 'identity' } : { ...record, length: decoded }
}

class Meter {
  /** The most expensive part of an upload. */
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

  /** Base64 MD5, once everything went through; only of one that hashes. */
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
 * Of content that came compressed; it may not be larger than content that is not. null: it is no gzip, or not all of
 * one; decoding it would fail each reader.
 */
async function decodedLength(
  id: string, record: AttachmentRecord, request: RequestContext, services: Services,
): Promise<number | null> {
  const { coordinator, runtime, options: { attachmentBytesMax } } = services
  let bytes = 0
  try {
    for await (const chunk of runtime.compression.gunzip(coordinator.readBlob(request.database, id, record, null, request))) {
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
