/** Makes a request for the path to which a rewrite leads. */
import { ApiError } from '@sectional/core'
import type { HttpExchange } from '@sectional/runtime'
import { requireSameSiteRewrite } from '../messages/cross-site.ts'
import { FunctionError } from '../messages/function-error.ts'
import { Query } from '../request/query.ts'
import type { RequestContext } from '../request/request-context.ts'
import { encodeSegment } from '../request/request-path.ts'
import type { Services } from '../services/services.ts'
import type { HttpOptions } from '../settings/http-options.ts'
import { isHeader } from './function-response.ts'
import { insecureRule, type RewrittenPath } from './rewrite-rules.ts'
import { RewrittenExchange } from '../request/rewritten-exchange.ts'
import { virtualHostPath } from '../request/virtual-hosts.ts'

/** What a rewrite function may change besides the path. */
export interface RewriteChanges {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array | null
}

/** A client cannot send a longer target either, because its headers are limited. A rewritten one is read again. */
const targetLengthMax = 64 * 1024
const requestedPath = 'x-couchdb-requested-path'
/**
 * Headers that a rewrite must not set: those from which the server has learned who sent the request and how to read it,
 * and those by which browsers and proxies say where it comes from.
 */
const reservedHeaders: ReadonlySet<string> = new Set([
  'authorization', 'connection', 'content-encoding', 'content-length', 'cookie', 'expect', 'host', 'keep-alive',
  'origin', 'proxy-authorization', 'proxy-connection', 'referer', 'te', 'trailer', 'transfer-encoding', 'upgrade',
  'x-couch-request-id', 'x-http-method-override', requestedPath, virtualHostPath,
])
/** The headers that only browsers set (`Sec-Fetch-Site`), and those of proxies. */
const reservedPrefixes = ['sec-', 'x-auth-', 'x-forwarded-']

/**
 * Turns a request into the one to which a rewrite leads. Its user, its limits and its accounting stay those of the
 * client's request.
 *
 * @param path relative to the design document
 * @throws ApiError `too_long`; `illegal_docid` for a path that is not valid Unicode; `forbidden` when another site uses
 * a session to write
 * @throws FunctionError `insecure_rewrite_rule` for a path out of the database while `chttpd/secure_rewrites` is set;
 * `rewrite_error` for a header that a rewrite must not set
 */
export function rewriteRequest(
  request: RequestContext, { segments, query: parameters }: RewrittenPath, changes: RewriteChanges, services: Services,
): void {
  const { options } = services
  const { secureRewrites, uriLengthMax } = options
  const { database, exchange, params: [design] } = request
  const path = normalized([database.name, '_design', design!, ...segments])
  if (secureRewrites && path[0] !== database.name) throw insecureRule()
  if (!path.every(segment => segment.isWellFormed())) {
    throw new ApiError('illegal_docid', 'Document id must be valid UTF-8')
  }
  const query = new Query(parameters)
  const target = targetOf(path, query)
  if (target.length > Math.min(uriLengthMax, targetLengthMax)) throw new ApiError('too_long')
  const method = changes.method ?? (request.head ? 'HEAD' : request.method)
  requireSameSiteRewrite(request, method)
  const body = changes.body ?? null
  const headers = headersOf(exchange, request.rewrites === 0, changes.headers ?? {}, body, options)
  request.rewrite(new RewrittenExchange(exchange, { method, target, headers, body }), path, query)
}

/** Resolves the segments `.` and `..`. */
function normalized(segments: readonly string[]): readonly string[] {
  const path: string[] = []
  for (const segment of segments) {
    if (segment === '..') path.pop()
    else if (segment !== '.') path.push(segment)
  }
  return path
}

function targetOf(path: readonly string[], query: Query): string {
  // Bytes that are not UTF-8 are kept in the parsed query only. The handler that reads the parameter reports the error.
  const parameters = query.unicodeEntries().map(pair => pair.map(encodeURIComponent).join('='))
  return path.map(segment => `/${encodeSegment(segment)}`).join('')
    + (parameters.length === 0 ? '' : `?${parameters.join('&')}`)
}

function headersOf(
  { headers, target }: HttpExchange, isFirst: boolean, changed: Readonly<Record<string, string>>,
  body: Uint8Array | null, options: HttpOptions,
): HttpExchange['headers'] {
  const all = { ...headers }
  if (isFirst) all[requestedPath] = target
  for (const [given, value] of Object.entries(changed)) {
    const name = given.toLowerCase()
    if (isReserved(name, options)) {
      throw new FunctionError(500, 'rewrite_error', `A rewrite must not set the header ${JSON.stringify(given)}.`)
    }
    if (!isHeader(given, value)) {
      const reason = `A rewrite must not set a header with the name ${JSON.stringify(given)} and this value.`
      throw new FunctionError(500, 'rewrite_error', reason)
    }
    all[name] = value
  }
  if (body === null) return all
  // The body was read and decoded.
  return {
    ...all, 'content-length': String(body.length), 'transfer-encoding': undefined, 'content-encoding': undefined,
  }
}

function isReserved(name: string, options: HttpOptions): boolean {
  const ofProxy = [
    options.forwardedHostHeader, options.forwardedProtoHeader, options.forwardedSslHeader,
    options.peerHeader?.toLowerCase(), options.proxyUserHeader, options.proxyRolesHeader, options.proxyTokenHeader,
  ]
  return reservedHeaders.has(name) || reservedPrefixes.some(prefix => name.startsWith(prefix)) || ofProxy.includes(name)
}
