/** Builds the object `req`, by which functions of design documents see the request. */
import { asBuffer, type JsonObject } from '@sectional/core'
import { sessionCookieName } from '../authentication/session-cookie.ts'
import { databaseInformation } from '../databases/database-information.ts'
import { readBody } from '../messages/body.ts'
import { Query } from '../request/query.ts'
import type { RequestContext } from '../request/request-context.ts'
import { virtualHostPath } from '../request/virtual-hosts.ts'
import { splitPath, splitTarget } from '../request/request-path.ts'
import { userContext } from '../request/user.ts'
import type { Services } from '../services/services.ts'
import { httpDeclarations } from '../settings/http-options.ts'
import { usualCase } from './header-case.ts'

/** Headers with credentials. No function sees them; `req.cookie` has the cookies except that of the session. */
const credentials: ReadonlySet<string> = new Set([
  'authorization', 'cookie', 'proxy-authorization', 'x-auth-couchdb-token',
])
/** Parameters of the query whose values are JSON. All others are texts, as in CouchDB. */
const jsonParameters: ReadonlySet<string> = new Set(['key', 'startkey', 'endkey', 'descending'])

/** What a function sees in `req` besides the request's head. */
export interface RequestParts {
  /** Id of the document that the path names, or null. */
  readonly id: string | null
  /** The body of the request, which list functions see as the object that was sent; null when the request has none. */
  readonly body: Uint8Array | JsonObject | null
}

/**
 * Reads the body of a request that a function handles. Returns null when the request has none.
 *
 * @throws ApiError `too_large` when the body has more bytes than a document may have: it becomes a string in the heap
 * of the function
 */
export async function readRequestBody(request: RequestContext, services: Services): Promise<Uint8Array | null> {
  const { headers } = request.exchange
  if (headers['content-length'] === undefined && headers['transfer-encoding'] === undefined) return null
  const { bodyBytesMax, documentBytesMax: bytes, requestBytesMax } = services.options
  if (bytes >= Math.min(bodyBytesMax, requestBytesMax)) return readBody(request, services)
  return readBody(request, services, { bytes, setting: httpDeclarations.documentBytesMax.name })
}

/**
 * Returns `req` as JSON text. It asks the replicas of all shards for the state of the database (`req.info`), so that a
 * request or a feed should build it once. Requests that come at the same time share the answer.
 *
 * @throws ApiError `invalid_json` when the query has a `key`, `startkey`, `endkey` or `descending` that is not JSON;
 * `invalid_url_encoding` when a form is malformed; the errors of the coordinator
 */
export async function requestObject(
  { id, body }: RequestParts, request: RequestContext, services: Services,
): Promise<string> {
  const { database, exchange, segments, user } = request
  const info = await sharedInformation(request, services)
  const text = body instanceof Uint8Array ? asBuffer(body).toString('utf8') : null
  return JSON.stringify({
    info,
    id,
    uuid: services.uuids.next(),
    method: request.method,
    requested_path: requestedPath(request, services),
    path: segments,
    raw_path: exchange.target,
    query: Object.fromEntries(request.query.unicodeEntries().map(([name, value]) => (
      [name, jsonParameters.has(name) ? request.query.json(name) : value]
    ))),
    headers: shownHeaders(request, services),
    body: text ?? body ?? 'undefined',
    peer: exchange.remoteAddress,
    form: isForm(request) && text !== null ? Object.fromEntries(Query.parse(text).unicodeEntries()) : {},
    cookie: shownCookies(request),
    userCtx: userContext(user, database.name),
    secObj: database.security,
  })
}

/** The description of a database belongs to no single request, so that the end of one does not abort it. */
const neverAborted = new AbortController().signal

async function sharedInformation(
  { database, requestId, signal }: RequestContext, { coordinator, descriptions }: Services,
): Promise<object> {
  const context = { requestId, signal: neverAborted }
  const info = await descriptions.share(
    database.incarnation, () => databaseInformation(database, context, { coordinator }),
  )
  signal.throwIfAborted()
  return info
}

/** Returns the segments of the path that the client sent. Requests to virtual hosts and rewritten ones name it. */
function requestedPath({ exchange }: RequestContext, { options }: Services): readonly string[] {
  const { headers, target } = exchange
  const original = headers[virtualHostPath] ?? headers['x-couchdb-requested-path'] ?? target
  return splitPath(splitTarget(original).path, options.plusIsSpace)
}

function shownHeaders({ exchange }: RequestContext, { options }: Services): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(exchange.headers).filter(([name]) => !credentials.has(name) && name !== options.proxyTokenHeader)
      .map(([name, value]) => [usualCase(name), value]),
  )
}

function isForm(request: RequestContext): boolean {
  const type = request.header('content-type')?.split(';', 1)[0]!.trim().toLowerCase()
  return type === 'application/x-www-form-urlencoded'
}

function shownCookies(request: RequestContext): Record<string, string> {
  const cookies = (request.header('cookie') ?? '').split(';').map(pair => pair.trim()).filter(pair => pair !== '')
    .map((pair): [string, string] => {
      const [name, ...value] = pair.split('=')
      return [name!.trim(), value.join('=').trim().replace(/^"(.*)"$/, '$1')]
    })
  return Object.fromEntries(cookies.filter(([name]) => name !== sessionCookieName))
}
