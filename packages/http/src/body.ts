/** Request bodies: size, content coding, content type, JSON. */
import { gunzipSync } from 'node:zlib'
import { ApiError, parseJson, parseJsonObject, type JsonObject } from '@sectional/core'
import { BodyTooLargeError } from '@sectional/runtime'

import type { RequestContext } from './request-context.ts'
import type { Services } from './services.ts'
import { requestTooLarge, type RequestLimit } from './size-limits.ts'

const requestSizeSetting = 'chttpd/max_http_request_size'

/**
 * The whole body, decoded from gzip when the client says so. Counted against the node's budget until the request ends.
 * @param limit of the body as sent and as decoded; by default that of the node
 */
export async function readBody(request: RequestContext, services: Services, limit = bodyLimit(services)): Promise<Uint8Array> {
  const startedAt = services.runtime.clock.monotonic()
  const bytes = await receive(request, services, limit)
  request.bodyTimeMs += services.runtime.clock.monotonic() - startedAt
  return decodeContent(request, services, bytes, limit)
}

function bodyLimit({ options, settings }: Services): RequestLimit {
  const { bodyBytesMax } = options
  const { requestBytesMax } = settings
  return bodyBytesMax < requestBytesMax ? { bytes: bodyBytesMax, setting: 'limits/body_bytes' } : { bytes: requestBytesMax, setting: requestSizeSetting }
}

async function receive(request: RequestContext, { admission }: Services, limit: RequestLimit): Promise<Uint8Array> {
  const { exchange } = request
  const announced = exchange.headers['content-length']
  if (announced === undefined && exchange.headers['transfer-encoding'] === undefined) return emptyBody
  const length = Number(announced ?? 0)
  if (length > limit.bytes) throw requestTooLarge(length, limit)
  admission.checkBody(length)
  try {
    return await exchange.readBody(limit.bytes, bytes => admission.reserveBody(request, bytes))
  } catch (error) {
    throw error instanceof BodyTooLargeError ? requestTooLarge(undefined, limit, error) : error
  }
}

const emptyBody = new Uint8Array(0)

function decodeContent(request: RequestContext, services: Services, bytes: Uint8Array, limit: RequestLimit): Uint8Array {
  const coding = request.exchange.headers['content-encoding']
  if (coding === undefined || coding === 'identity') return bytes
  if (coding !== 'gzip') throw new ApiError('bad_content_type', `${coding} is not a supported content encoding.`)
  let inflated: Uint8Array
  try {
    inflated = gunzipSync(bytes, { maxOutputLength: limit.bytes })
  } catch (error) {
    if ((error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE') throw requestTooLarge(undefined, limit, error)
    throw new ApiError('bad_request', 'Request body is not properly gzipped.', { cause: error })
  }
  services.admission.reserveBody(request, inflated.length)
  return inflated
}

/** The body as it comes, for what is not kept in memory. @throws ApiError `too_large` above `chttpd/max_http_request_size` */
export async function* requestChunks(request: RequestContext, services: Services): AsyncGenerator<Uint8Array, void, undefined> {
  const { exchange } = request
  const limit = { bytes: services.settings.requestBytesMax, setting: requestSizeSetting }
  const announced = exchange.headers['content-length']
  if (announced !== undefined && Number(announced) > limit.bytes) throw requestTooLarge(Number(announced), limit)
  if (announced === undefined && exchange.headers['transfer-encoding'] === undefined) return
  let bytes = 0
  for await (const chunk of exchange.body) {
    bytes += chunk.length
    if (bytes > limit.bytes) throw requestTooLarge(bytes, limit)
    yield chunk
  }
}

/** @throws ApiError `bad_content_type` unless the body is announced as JSON; an absent type counts as wrong */
export function requireJsonType(request: RequestContext): void {
  const type = request.exchange.headers['content-type']
  if (type === 'application/json') return
  const name = type?.split(';', 1)[0]?.trim().toLowerCase()
  if (name !== 'application/json') throw new ApiError('bad_content_type', 'Content-Type must be application/json')
}

/** What is to be parsed as JSON. @throws ApiError `missing_body` when the request has no body, not even an empty one */
export async function readJsonBytes(request: RequestContext, services: Services): Promise<Uint8Array> {
  const { headers } = request.exchange
  if (headers['content-length'] === undefined && headers['transfer-encoding'] === undefined) throw new ApiError('missing_body')
  return readBody(request, services)
}

/** Any JSON value, whatever the content type says. */
export async function readJson(request: RequestContext, services: Services): Promise<unknown> {
  return parseJson(await readJsonBytes(request, services))
}

/** @throws ApiError when the body is no JSON object */
export async function readJsonObject(request: RequestContext, services: Services): Promise<JsonObject> {
  return parseJsonObject(await readJsonBytes(request, services))
}
