/** Sends responses: the headers that all of them share, JSON, 304, and streams. */
import type { HttpBodyWriter, HttpHeaders } from '@sectional/runtime'
import { withCrossOrigin } from './cross-origin.ts'
import { frameOptions } from './frame-options.ts'
import { asScript, scriptType, scriptWriter } from './script-answer.ts'
import { addressedOrigin } from '../request/forwarded-headers.ts'
import { overloaded } from '../request/overload-error.ts'
import { encodeSegment } from '../request/request-path.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { admissionDeclarations } from '../settings/admission-options.ts'

/**
 * Returns the content type of a JSON response. The configured default (`chttpd/json_default_type`, text by default) is
 * used for clients that send no Accept header, or one that accepts only text or any type. All others get
 * `application/json`.
 */
function jsonContentType(accept: string | undefined, defaultType: string): string {
  switch (accept) {
    case undefined:
    case '':
    case '*/*':
      return defaultType
    case 'application/json':
      return 'application/json'
    default:
      return accept.split(',').every(range => anyOrText.test(range)) ? defaultType : 'application/json'
  }
}

/** A media range of the Accept header (RFC 9110, section 12.5.1) that admits text and no other named type. */
const anyOrText = /^\s*(?:\*|text)\//i

/** Returns the headers of a JSON response. */
export function jsonHeaders(request: RequestContext, services: Services): HttpHeaders {
  const { callback, exchange: { headers: { accept } } } = request
  request.answersJson = true
  return {
    'Server': serverProduct(services),
    'Content-Type': callback === null ? jsonContentType(accept, services.options.jsonDefaultType) : scriptType,
    'Cache-Control': 'must-revalidate',
    'X-Couch-Request-ID': request.requestId,
    'X-CouchDB-Body-Time': bodyTime(request),
  }
}

/** Prevents browsers from taking content of users for another type than the one that is named. */
export const withoutSniffing: HttpHeaders = { 'X-Content-Type-Options': 'nosniff' }

/** Returns the headers that every response has. */
export function plainHeaders(request: RequestContext, services: Services): HttpHeaders {
  return {
    'Server': serverProduct(services), 'X-Couch-Request-ID': request.requestId,
    'X-CouchDB-Body-Time': bodyTime(request),
  }
}

function bodyTime(request: RequestContext): string {
  return request.bodyTimeMs === 0 ? '0' : String(Math.round(request.bodyTimeMs))
}

function serverProduct(services: Services): string {
  return services.options.serverHeaderVersions ? `Sectional/${services.nodeInformation.version}` : 'Sectional'
}

/** @param body JSON text or bytes without the final newline */
export function sendJsonText(
  request: RequestContext, services: Services, status: number, body: string | Uint8Array, extra?: HttpHeaders,
): void {
  const headers = jsonHeaders(request, services)
  if (extra !== undefined) Object.assign(headers, extra)
  send(request, services, status, headers, jsonLine(body))
}

export function sendJson(
  request: RequestContext, services: Services, status: number, value: unknown, extra?: HttpHeaders,
): void {
  sendJsonText(request, services, status, JSON.stringify(value), extra)
}

export function sendNotModified(request: RequestContext, services: Services, etag: string): void {
  send(request, services, 304, { ...plainHeaders(request, services), 'ETag': etag }, '')
}

export function sendRedirect(request: RequestContext, services: Services, status: number, location: string): void {
  send(request, services, status, { ...plainHeaders(request, services), 'Location': location }, '')
}

/** Sends 204 with only the headers of a preflight response. */
export function sendPreflight(request: RequestContext, services: Services, headers: HttpHeaders): void {
  request.status = 204
  request.exchange.send(204, { ...plainHeaders(request, services), ...headers }, '')
}

/** Bodies up to this size fit into the buffers of a connection and are not counted. */
const smallAnswerBytes = 16 * 1024

/**
 * Sends a whole response.
 *
 * @param acknowledgesWrite whether the response must be sent in any case, because it acknowledges a write
 * @throws ApiError `service_unavailable` for a large response to a read while other large responses wait for slow
 * clients
 */
export function send(
  request: RequestContext, services: Services, status: number, headers: HttpHeaders, content: string | Uint8Array,
  acknowledgesWrite = status !== 200,
): void {
  const callback = callbackOf(request, headers)
  const body = request.isEmptied ? '' : callback === null ? content : asScript(callback, content)
  if (body.length > smallAnswerBytes) {
    if (!acknowledgesWrite) checkAnswer(body.length, services)
    services.admission.reserveAnswer(request, body.length)
  }
  request.status = status
  request.exchange.send(status, adapted(request, services, headers), body)
}

/**
 * Closes the connection of a client that has not read its answer for long when an answer does not fit, so that clients
 * which do not read do not keep the answers of others away.
 * @throws ApiError `service_unavailable` when `bytes` do not fit in addition to those that clients have not read
 */
export function checkAnswer(bytes: number, { admission, runtime }: Services): void {
  if (admission.fitsAnswer(bytes)) return
  runtime.http.endStalled(1)
  throw overloaded('large answers', admissionDeclarations.bufferedBodyBytesMax)
}

/** Takes the body of an answer that was sent without one. */
const discardingWriter: HttpBodyWriter = { write: async () => {}, end: () => {}, abort: () => {} }

/** Begins a chunked response. Later errors break the connection. */
export function openStream(
  request: RequestContext, services: Services, status: number, headers: HttpHeaders,
): HttpBodyWriter {
  if (request.isEmptied) {
    send(request, services, status, headers, '')
    return request.writer = discardingWriter
  }
  request.status = status
  const callback = callbackOf(request, headers)
  const stream = request.exchange.stream(status, adapted(request, services, headers))
  const writer = callback === null || request.head ? stream : scriptWriter(callback, stream)
  request.writer = writer
  return writer
}

/** Returns the function that an answer with these headers calls; null when the answer is no script. */
function callbackOf({ answersJson, callback }: RequestContext, headers: HttpHeaders): string | null {
  return answersJson && headers['Content-Type'] === scriptType ? callback : null
}

/** Returns JSON with the newline that ends a body. */
export function jsonLine(json: string | Uint8Array): string | Uint8Array {
  return typeof json === 'string' ? `${json}\n` : withNewline(json)
}

function withNewline(bytes: Uint8Array): Uint8Array {
  const line = Buffer.allocUnsafe(bytes.length + 1)
  line.set(bytes)
  line[bytes.length] = 0x0a
  return line
}

/**
 * Adapts the headers to the client: adds those for frames and CORS, and removes those that `Prefer` makes unnecessary.
 */
function adapted(request: RequestContext, services: Services, headers: HttpHeaders): HttpHeaders {
  const { prefer } = request.exchange.headers
  if (request.renewedSession !== null && headers['Set-Cookie'] === undefined && !mayBeShared(headers)) {
    headers['Set-Cookie'] = services.sessions.header(request.renewedSession, request, services.crossOrigin)
  }
  if (services.options.framesLimited) {
    headers['X-Frame-Options'] = frameOptions(services.options, origin(request, services))
  }
  const kept = prefer === undefined ? headers : preferred(prefer, services, headers)
  if (!services.options.crossOriginEnabled) return kept
  return withCrossOrigin(request, services.crossOrigin.of(request.exchange), kept)
}

const sharedDirective = /(?:^|[\s,])(?:public|s-maxage)(?![\w-])/i

/** Returns whether shared caches may store the response and give it to others, so that it must not have a session. */
function mayBeShared(headers: HttpHeaders): boolean {
  return Object.entries(headers).some(
    ([name, value]) => name.toLowerCase() === 'cache-control' && sharedDirective.test(String(value)),
  )
}

const minimalHeaders =
  'Cache-Control, Content-Length, Content-Range, Content-Type, ETag, Server, Transfer-Encoding, Vary'
const minimalPreference = /(?:^|,)\s*return=minimal\s*(?:,|;|$)/i

/** Applies `Prefer: return=minimal` (RFC 7240), which keeps only the listed headers. */
function preferred(preference: string, services: Services, headers: HttpHeaders): HttpHeaders {
  if (!minimalPreference.test(preference)) return headers
  const listed = services.options.preferMinimal ?? minimalHeaders
  const kept = new Set(listed.split(',').map(name => name.trim().toLowerCase()))
  return Object.fromEntries(Object.entries(headers).filter(([name]) => kept.has(name.toLowerCase())))
}

const plainTag = /^[!#$&-~]+$/

/** Returns true when If-None-Match lists the tag. A weak prefix is ignored; `*` has no special meaning. */
export function matchesTag(request: RequestContext, etag: string): boolean {
  const header = request.exchange.headers['if-none-match']
  if (header === undefined) return false
  if (header === etag) return true
  return header.split(',').some(tag => tag.trim().replace(/^W\//, '') === etag)
}

/** Returns the absolute URL of a path, with the host and scheme that the client used. */
export function location(request: RequestContext, services: Services, ...segments: string[]): string {
  return origin(request, services) + segments.map(segment => `/${encodeSegment(segment)}`).join('')
}

/** Returns scheme and host by which the client addressed this server. */
export function origin({ exchange }: RequestContext, { options }: Pick<Services, 'options'>): string {
  return addressedOrigin(exchange, options)
}

/**
 * Returns the revision as a strong ETag. Characters that an ETag must not contain (RFC 9110, section 8.8.3) are
 * percent-encoded.
 */
export function documentTag(revision: string): string {
  return plainTag.test(revision) ? `"${revision}"` : `"${revision.replace(/[^!#$&-~]+/gu, encodeURIComponent)}"`
}

/** Returns the revision of an ETag, or the text itself when it has no quotes. */
export function taggedRevision(tag: string): string {
  const text = tag.trim()
  const quoted = /^"(.*)"$/.exec(text)?.[1]
  if (quoted === undefined) return text
  try {
    return decodeURIComponent(quoted)
  } catch {
    return quoted
  }
}
