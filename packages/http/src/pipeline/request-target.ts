/** Creates the request context of an exchange: request id, method override, path and query. */
import { ApiError } from '@sectional/core'
import type { HttpExchange } from '@sectional/runtime'
import { clientAddress } from '../request/client-address.ts'
import { Query } from '../request/query.ts'
import { RequestContext } from '../request/request-context.ts'
import { namesTwoHosts, splitPath, splitTarget } from '../request/request-path.ts'
import type { HttpOptions } from '../settings/http-options.ts'
import type { RequestIdGenerator } from '../services/uuid-generator.ts'

const acceptableRequestId = /^[0-9A-Za-z_-]{1,36}$/
const overridable = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'TRACE', 'CONNECT', 'COPY'])

export function requestIdOf(exchange: HttpExchange, ids: RequestIdGenerator): string {
  const given = exchange.headers['x-couch-request-id']
  return given !== undefined && acceptableRequestId.test(given) ? given : ids.next()
}

/** Returns the method. A POST may name another one in a header, for clients that cannot send it. */
function methodOf(exchange: HttpExchange): string {
  if (exchange.method !== 'POST') return exchange.method
  const override = exchange.headers['x-http-method-override']
  return override !== undefined && overridable.has(override) ? override : 'POST'
}

/** Returns a context without path and query, for the error response to a request whose target cannot be parsed. */
export function unreadableRequest(exchange: HttpExchange, requestId: string, startedAt: number): RequestContext {
  return new RequestContext(exchange, requestId, methodOf(exchange), [], Query.empty, startedAt)
}

/** @throws ApiError `too_long`, `invalid_url_encoding`, or `bad_request` for two hosts or a transfer coding */
export function readRequest(
  exchange: HttpExchange, requestId: string, options: HttpOptions, startedAt: number,
): RequestContext {
  if (exchange.target.length > options.uriLengthMax) throw new ApiError('too_long')
  // The listener joins repeated headers with commas, which no name of a host has.
  const host = exchange.headers['host']
  if (host?.includes(',') === true) throw new ApiError('bad_request', 'Only one Host is allowed')
  if (namesTwoHosts(exchange.target, host)) throw new ApiError('bad_request', 'The request names two hosts')
  checkTransferCoding(exchange)
  const { path, search } = splitTarget(exchange.target)
  const segments = splitPath(path, options.plusIsSpace)
  const query = Query.parse(search)
  const request = new RequestContext(exchange, requestId, methodOf(exchange), segments, query, startedAt)
  request.clientAddress = clientAddress(exchange, options)
  request.forwardedHost = exchange.headers[options.forwardedHostHeader]
  return request
}

/** Characters of an unknown transfer coding that its error repeats. */
const shownCodingMax = 100

/**
 * The listener decodes `chunked`, and leaves codings before it to the handler (RFC 9112, section 6.1). Those that it
 * refuses itself get 400, too.
 */
function checkTransferCoding({ headers }: HttpExchange): void {
  const coding = headers['transfer-encoding']
  if (coding === undefined || coding.toLowerCase() === 'chunked') return
  throw new ApiError('bad_request', `The transfer coding ${coding.slice(0, shownCodingMax)} is not supported: `
    + 'send chunked, and compress with Content-Encoding.')
}
