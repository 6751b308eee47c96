/**
 * Answers cross-origin requests of browsers (CORS, Fetch Standard 3.2; docs/reference/README.md#answers). It is off
 * unless `chttpd/enable_cors` is true. A request from an origin that is not allowed gets a response without CORS
 * headers.
 */
import type { HttpHeaders } from '@sectional/runtime'
import { allowsCredentials, type CrossOriginOptions } from '../request/cross-origin-hosts.ts'
import type { RequestContext } from '../request/request-context.ts'
import { comparableOrigin } from '../settings/cross-origin-options.ts'

const defaultMethods = ['CONNECT', 'COPY', 'DELETE', 'GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'TRACE']
/** Request headers that are always allowed. */
const allowedHeaders: readonly string[] = [
  'accept', 'accept-language', 'authorization', 'content-length', 'content-range', 'content-type', 'destination',
  'expires', 'if-match',
  'last-modified', 'origin', 'pragma', 'x-couch-full-commit', 'x-couch-id', 'x-couch-persist',
  'x-couchdb-www-authenticate',
  'x-http-method-override', 'x-requested-with', 'x-couchdb-vhost-path',
]
/** Response headers that are exposed to scripts when they are present. `content-type` always is. */
const plainHeaderNames: readonly string[] = [
  'cache-control', 'expires', 'pragma', 'content-language', 'last-modified',
]
const defaultExposed = [
  'accept-ranges', 'etag', 'server', 'x-couch-request-id', 'x-couch-update-newrev', 'x-couchdb-body-time',
]

/**
 * Adds the CORS headers to a response. With `Vary`, caches keep the answers to different origins apart. Answers without
 * the other headers need it too: a cache could give one of them to a page whose origin is allowed.
 */
export function withCrossOrigin(
  request: RequestContext, options: CrossOriginOptions, headers: HttpHeaders,
): HttpHeaders {
  const varying = { ...headers, 'Vary': headers['Vary'] === undefined ? 'Origin' : `${headers['Vary']}, Origin` }
  const origin = allowedOrigin(request, options)
  if (origin === null) return varying
  const present = new Set(Object.keys(headers).map(name => name.toLowerCase()))
  const exposed = ['content-type', ...plainHeaderNames.filter(name => present.has(name))]
  const more = listed(options.crossOriginExposedHeaders?.toLowerCase()) ?? defaultExposed
  return {
    ...varying,
    ...originHeaders(origin, options),
    'Access-Control-Expose-Headers': [...exposed, ...more].join(', '),
  }
}

/** Returns the headers of the 204 response to a preflight, or null when the request is not a preflight. */
export function preflightHeaders(request: RequestContext, options: CrossOriginOptions): HttpHeaders | null {
  if (request.method !== 'OPTIONS') return null
  const method = request.header('access-control-request-method')
  if (method === undefined) return null
  const origin = allowedOrigin(request, options)
  if (origin === null) return null
  const methods = listed(options.crossOriginMethods) ?? defaultMethods
  if (!methods.includes(method)) return null
  const asked = request.header('access-control-request-headers')
  if (asked !== undefined && !allowsHeaders(asked, options)) return null
  return {
    ...originHeaders(origin, options),
    'Vary': 'Origin',
    'Access-Control-Max-Age': String(options.crossOriginMaxAgeSeconds),
    'Access-Control-Allow-Methods': methods.join(', '),
    ...(asked === undefined ? {} : { 'Access-Control-Allow-Headers': asked }),
  }
}

/** Returns the request's origin when it is allowed, otherwise null. Origins are compared with scheme and port. */
function allowedOrigin(request: RequestContext, options: CrossOriginOptions): string | null {
  const origin = request.exchange.headers['origin']
  if (origin === undefined || !options.crossOriginEnabled) return null
  const origins = options.crossOriginOrigins
  return origins.includes('*') || origins.includes(comparableOrigin(origin)) ? origin : null
}

/** Returns whether the configuration lets scripts of the request's origin use the credentials of a user. */
export function allowsCredentialsOf(request: RequestContext, options: CrossOriginOptions): boolean {
  return allowsCredentials(options) && allowedOrigin(request, options) !== null
}

/** Returns whether the configuration lists the request's origin itself, and not only `*`. */
export function isListedOrigin(request: RequestContext, options: CrossOriginOptions): boolean {
  const origin = request.header('origin')
  return origin !== undefined && options.crossOriginEnabled
    && options.crossOriginOrigins.includes(comparableOrigin(origin))
}

function originHeaders(origin: string, options: CrossOriginOptions): HttpHeaders {
  const credentials = allowsCredentials(options)
  return {
    'Access-Control-Allow-Origin': origin,
    ...(credentials ? { 'Access-Control-Allow-Credentials': 'true' } : {}),
  }
}

function allowsHeaders(asked: string, options: CrossOriginOptions): boolean {
  const allowed = new Set([...allowedHeaders, ...options.crossOriginHeaders])
  return names(asked).every(name => allowed.has(name))
}

function names(list: string): readonly string[] {
  return listed(list.toLowerCase())!
}

/** Returns the items of a list with commas. */
function listed(list: string | undefined): readonly string[] | undefined {
  return list?.split(',').map(item => item.trim()).filter(item => item !== '')
}
