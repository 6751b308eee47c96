/** Reads request bodies: checks size, content coding and content type, and parses JSON. */
import { gunzipSync } from 'node:zlib'
import {
  ApiError, checkStructure, isJsonObject, parseDocument, parseDocumentInSlices, parseFiniteJson,
  parseFiniteJsonInSlices, smallJsonBytes, type JsonObject, type ParsedDocument,
} from '@sectional/core'
import { BodyTooLargeError, CompressionError } from '@sectional/runtime'
import type { RequestContext } from '../request/request-context.ts'
import { singleChunk } from '../request/single-chunk.ts'
import type { Services } from '../services/services.ts'
import { httpDeclarations } from '../settings/http-options.ts'
import { gzipTooLarge, requestTooLarge, type RequestLimit } from '../settings/size-limits.ts'

/**
 * Reads the whole body and decodes gzip when the request declares it. The bytes count against the node's budget until
 * the request ends.
 * @param ownLimit limit of the endpoint, in addition to those of the node. All concern the body as sent and as decoded
 */
export async function readBody(
  request: RequestContext, services: Services, ownLimit?: RequestLimit,
): Promise<Uint8Array> {
  const limit = smallestLimit(services, ownLimit)
  const startedAt = services.runtime.clock.monotonic()
  const bytes = await receive(request, services, limit)
  request.bodyTimeMs += services.runtime.clock.monotonic() - startedAt
  return decodeContent(request, services, bytes, limit)
}

function smallestLimit(services: Services, ownLimit: RequestLimit | undefined): RequestLimit {
  const limit = bodyLimit(services)
  return ownLimit !== undefined && ownLimit.bytes < limit.bytes ? ownLimit : limit
}

function bodyLimit({ options: { bodyBytesMax, requestBytesMax } }: Services): RequestLimit {
  return bodyBytesMax < requestBytesMax
    ? { bytes: bodyBytesMax, setting: httpDeclarations.bodyBytesMax.name }
    : { bytes: requestBytesMax, setting: httpDeclarations.requestBytesMax.name }
}

async function receive(request: RequestContext, { admission }: Services, limit: RequestLimit): Promise<Uint8Array> {
  const { exchange } = request
  const announced = exchange.headers['content-length']
  if (announced === undefined && exchange.headers['transfer-encoding'] === undefined) return emptyBody
  const length = Number(announced ?? 0)
  if (length > limit.bytes) throw requestTooLarge(length, limit)
  admission.checkBody(request, length)
  try {
    const body = await exchange.readBody(limit.bytes, bytes => admission.reserveBody(request, bytes))
    admission.bodyArrived(request)
    return body
  } catch (error) {
    throw error instanceof BodyTooLargeError ? requestTooLarge(undefined, limit, error) : error
  }
}

const emptyBody = new Uint8Array(0)

function decodeContent(
  request: RequestContext, services: Services, bytes: Uint8Array, limit: RequestLimit,
): Uint8Array | Promise<Uint8Array> {
  const coding = request.exchange.headers['content-encoding']
  if (coding === undefined || coding === 'identity') return bytes
  if (coding !== 'gzip') throw new ApiError('bad_content_type', `${coding} is not a supported content encoding.`)
  return bytes.length <= smallGzipBytes
    ? inflateAtOnce(request, services, bytes, limit)
    : inflate(request, services, bytes, limit)
}

/**
 * Compressed bodies up to this size are inflated synchronously while the result stays below `smallInflatedBytes`, which
 * takes some tenths of a millisecond: many such requests may be handled in one turn of the event loop.
 */
const smallGzipBytes = 8 * 1024
const smallInflatedBytes = 128 * 1024
/**
 * Decoded bytes up to which the compression ratio is not limited: a document of one repeated text can be compressed
 * 1,000 times.
 */
const freeRatioBytes = 4 * 1024 * 1024

/**
 * Returns the maximum decoded bytes of a gzip body: `limits/gzip_ratio` times its size, at most the limit of other
 * bodies.
 */
function inflatedMax(bytes: Uint8Array, { options }: Services, limit: RequestLimit): number {
  return Math.min(limit.bytes, Math.max(freeRatioBytes, bytes.length * options.gzipRatioMax))
}

function inflatedTooLarge(bytes: Uint8Array, services: Services, limit: RequestLimit, cause?: unknown): ApiError {
  return inflatedMax(bytes, services, limit) === limit.bytes
    ? requestTooLarge(undefined, limit, cause)
    : gzipTooLarge(bytes.length, services.options.gzipRatioMax, freeRatioBytes)
}

function inflateAtOnce(
  request: RequestContext, services: Services, bytes: Uint8Array, limit: RequestLimit,
): Uint8Array | Promise<Uint8Array> {
  const lengthMax = inflatedMax(bytes, services, limit)
  let inflated: Uint8Array
  try {
    inflated = gunzipSync(bytes, { maxOutputLength: Math.min(lengthMax, smallInflatedBytes) })
  } catch (error) {
    if ((error as { code?: string }).code !== 'ERR_BUFFER_TOO_LARGE') throw badGzip(error)
    if (lengthMax > smallInflatedBytes) return inflate(request, services, bytes, limit)
    throw inflatedTooLarge(bytes, services, limit, error)
  }
  services.admission.reserveBody(request, inflated.length)
  return inflated
}

/** Inflates on the thread pool chunk by chunk, so that a body that becomes too large is refused early. */
async function inflate(
  request: RequestContext, services: Services, bytes: Uint8Array, limit: RequestLimit,
): Promise<Uint8Array> {
  const lengthMax = inflatedMax(bytes, services, limit)
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for await (const chunk of services.runtime.compression.gunzip(singleChunk(bytes))) {
      length += chunk.length
      if (length > lengthMax) throw inflatedTooLarge(bytes, services, limit)
      services.admission.reserveBody(request, chunk.length)
      chunks.push(chunk)
    }
  } catch (error) {
    throw error instanceof CompressionError ? badGzip(error) : error
  }
  return Buffer.concat(chunks)
}

function badGzip(cause: unknown): ApiError {
  return new ApiError('bad_request', 'Request body is not properly gzipped.', { cause })
}

/**
 * Yields the body as it arrives, for content that is not kept in memory.
 *
 * @throws ApiError `too_large` above `chttpd/max_http_request_size`
 */
export async function* requestChunks(
  request: RequestContext, services: Services,
): AsyncGenerator<Uint8Array, void, undefined> {
  const { exchange } = request
  const limit = { bytes: services.options.requestBytesMax, setting: httpDeclarations.requestBytesMax.name }
  const announced = exchange.headers['content-length']
  if (announced !== undefined && Number(announced) > limit.bytes) throw requestTooLarge(Number(announced), limit)
  if (announced === undefined && exchange.headers['transfer-encoding'] === undefined) return
  let bytes = 0
  for await (const chunk of exchange.body) {
    bytes += chunk.length
    if (bytes > limit.bytes) throw requestTooLarge(bytes, limit)
    yield chunk
  }
  services.admission.bodyArrived(request)
}

/** @throws ApiError `bad_content_type` unless the content type is JSON; a missing content type is an error too */
export function requireJsonType(request: RequestContext): void {
  const type = request.exchange.headers['content-type']
  if (type === 'application/json') return
  const name = type?.split(';', 1)[0]?.trim().toLowerCase()
  if (name !== 'application/json') throw new ApiError('bad_content_type', 'Content-Type must be application/json')
}

/**
 * Reads a body that must be JSON. @throws ApiError `missing_body` when the request has no body at all; an empty body is
 * accepted
 */
export async function readJsonBytes(
  request: RequestContext, services: Services, ownLimit?: RequestLimit,
): Promise<Uint8Array> {
  const { headers } = request.exchange
  if (headers['content-length'] === undefined && headers['transfer-encoding'] === undefined) {
    throw new ApiError('missing_body')
  }
  return readBody(request, services, ownLimit)
}

/** Reads any JSON value. The content type is ignored. */
export async function readJson(request: RequestContext, services: Services): Promise<unknown> {
  return parseBody(await readJsonBytes(request, services), request, services)
}

/** Reads a JSON object. @throws ApiError when the body is not a JSON object */
export async function readJsonObject(
  request: RequestContext, services: Services, ownLimit?: RequestLimit,
): Promise<JsonObject> {
  return parseBodyObject(await readJsonBytes(request, services, ownLimit), request, services)
}

/** Reads the body of a query by selector. @throws ApiError when it is not a JSON object, or is too large */
export function readQueryObject(request: RequestContext, services: Services): Promise<JsonObject> {
  const { findBytesMax: bytes } = services.options
  return readJsonObject(request, services, { bytes, setting: httpDeclarations.findBytesMax.name })
}

/** Parses a body that must be a JSON object. @throws ApiError as `parseBody`, and when it is not a JSON object */
export async function parseBodyObject(
  bytes: Uint8Array, request: RequestContext, services: Services,
): Promise<JsonObject> {
  const value = await parseBody(bytes, request, services)
  if (!isJsonObject(value)) throw new ApiError('not_an_object')
  return value
}

/** Estimated bytes of memory that one parsed value or member name takes. */
const valueBytes = 64

/**
 * Parses a body that is not a document. A large body is scanned in slices before it is parsed.
 * @throws ApiError `too_large` for more values than `limits/json_values`, and the errors of `parseFiniteJson`
 */
export async function parseBody(bytes: Uint8Array, request: RequestContext, services: Services): Promise<unknown> {
  if (bytes.length <= smallJsonBytes) return parseFiniteJson(bytes)
  const { admission, options } = services
  const limits = { valuesMax: options.jsonValuesMax, setting: httpDeclarations.jsonValuesMax.name }
  const values = await runWhileWanted(checkStructure(bytes, limits), request, services)
  admission.reserveParsed(request, bytes.length + values * valueBytes)
  return runWhileWanted(parseFiniteJsonInSlices(bytes), request, services)
}

/**
 * Runs work without side effects in slices, and aborts it between two slices when the client has disconnected.
 * @param work yields between its slices
 * @throws ClientGoneError
 */
export function runWhileWanted<Result>(
  work: Generator<void, Result>, { signal }: RequestContext, { runtime }: Services,
): Promise<Result> {
  return runtime.turns.run((function* () {
    for (;;) {
      signal.throwIfAborted()
      const step = work.next()
      if (step.done === true) return step.value
      yield
    }
  })())
}

/** Reads the document of a request. @throws ApiError as `readJsonBytes` and `parseDocumentBody` */
export async function readDocumentBody(request: RequestContext, services: Services): Promise<ParsedDocument> {
  const bytes = await readJsonBytes(request, services)
  return bytes.length <= smallJsonBytes ? parseDocument(bytes) : parseDocumentBody(bytes, request, services)
}

/** Parses a body as a document. @throws ApiError as `parseDocument` and `parseDocumentInSlices` */
export async function parseDocumentBody(
  bytes: Uint8Array, request: RequestContext, services: Services,
): Promise<ParsedDocument> {
  if (bytes.length <= smallJsonBytes) return parseDocument(bytes)
  services.admission.reserveParsed(request, bytes.length)
  return runWhileWanted(parseDocumentInSlices(bytes), request, services)
}
