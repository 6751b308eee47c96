/** Answers: headers that all share, JSON, 304, streams. */
import type { HttpBodyWriter, HttpHeaders } from '@sectional/runtime'
import { withCrossOrigin } from './cross-origin.ts'
import { encodeSegment } from '../request/request-path.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

/**
 * The content type of a JSON answer. The configured default (`chttpd/json_default_type`, a text by default) goes to
 * clients that send no Accept header or accept anything or text only; all others get `application/json`.
 */
export function jsonContentType(accept: string | undefined, defaultType: string): string {
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

/** Headers of every answer, and those of JSON. */
export function jsonHeaders(request: RequestContext, services: Services): HttpHeaders {
  return {
    'Server': serverProduct(services),
    'Content-Type': jsonContentType(request.exchange.headers['accept'], services.options.jsonDefaultType),
    'Cache-Control': 'must-revalidate',
    'X-Couch-Request-ID': request.requestId,
    'X-CouchDB-Body-Time': bodyTime(request),
  }
}

/** Headers of every answer. */
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
  send(request, services, status, headers, typeof body === 'string' ? `${body}\n` : withNewline(body))
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

/** 204 with the headers of a preflight alone. */
export function sendPreflight(request: RequestContext, services: Services, headers: HttpHeaders): void {
  request.status = 204
  request.exchange.send(204, { ...plainHeaders(request, services), ...headers }, '')
}

/** What the buffers of a connection hold anyway. */
const smallAnswerBytes = 16 * 1024

/** @throws ApiError `service_unavailable` for a large answer to a read while clients are slow to take others */
export function send(
  request: RequestContext, services: Services, status: number, headers: HttpHeaders, body: string | Uint8Array,
): void {
  if (body.length > smallAnswerBytes) {
    // Who has written something must hear of it.
    if (status === 200) services.admission.checkAnswer(body.length)
    services.admission.reserveAnswer(request, body.length)
  }
  request.status = status
  request.exchange.send(status, adapted(request, services, headers), body)
}

/** Opens a chunked answer; errors from here on break the connection. */
export function openStream(
  request: RequestContext, services: Services, status: number, headers: HttpHeaders,
): HttpBodyWriter {
  request.status = status
  const writer = request.exchange.stream(status, adapted(request, services, headers))
  request.writer = writer
  return writer
}

function withNewline(bytes: Uint8Array): Uint8Array {
  const line = Buffer.allocUnsafe(bytes.length + 1)
  line.set(bytes)
  line[bytes.length] = 0x0a
  return line
}

/** The headers as this client wants them: fewer, or with those that a browser needs. */
function adapted(request: RequestContext, services: Services, headers: HttpHeaders): HttpHeaders {
  const { prefer, origin } = request.exchange.headers
  if (request.renewedSession !== null && headers['Set-Cookie'] === undefined) {
    headers['Set-Cookie'] = services.sessions.header(request.renewedSession, request.exchange.encrypted)
  }
  const kept = prefer === undefined ? headers : preferred(prefer, services, headers)
  return origin === undefined ? kept : withCrossOrigin(request, services.options, kept)
}

const minimalHeaders =
  'Cache-Control, Content-Length, Content-Range, Content-Type, ETag, Server, Transfer-Encoding, Vary'
const minimalPreference = /(?:^|,)\s*return=minimal\s*(?:,|;|$)/i

/** `Prefer: return=minimal` (RFC 7240) leaves only the listed headers. */
function preferred(preference: string, services: Services, headers: HttpHeaders): HttpHeaders {
  if (!minimalPreference.test(preference)) return headers
  const listed = services.options.preferMinimal ?? minimalHeaders
  const kept = new Set(listed.split(',').map(name => name.trim().toLowerCase()))
  return Object.fromEntries(Object.entries(headers).filter(([name]) => kept.has(name.toLowerCase())))
}

const plainTag = /^[!#$&-~]+$/

/** True when If-None-Match lists the tag. Weak prefixes are stripped; `*` is nothing special. */
export function matchesTag(request: RequestContext, etag: string): boolean {
  const header = request.exchange.headers['if-none-match']
  if (header === undefined) return false
  if (header === etag) return true
  return header.split(',').some(tag => tag.trim().replace(/^W\//, '') === etag)
}

/** Absolute URL of a path, as the client sees this server. */
export function location(request: RequestContext, ...segments: string[]): string {
  return origin(request) + segments.map(segment => `/${encodeSegment(segment)}`).join('')
}

export function origin(request: RequestContext): string {
  const { headers, encrypted } = request.exchange
  const secure = headers['x-forwarded-ssl'] === 'on' || headers['x-forwarded-proto'] === 'https'
    || (encrypted && headers['x-forwarded-proto'] === undefined)
  const host = headers['x-forwarded-host'] ?? headers['host'] ?? 'localhost'
  return `${secure ? 'https' : 'http'}://${host}`
}

/** The revision as a strong tag; what a tag cannot carry (RFC 9110, section 8.8.3) is escaped as in URLs. */
export function documentTag(revision: string): string {
  return plainTag.test(revision) ? `"${revision}"` : `"${revision.replace(/[^!#$&-~]+/gu, encodeURIComponent)}"`
}

/** The revision that a tag names, or the text itself where it has no quotes. */
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
