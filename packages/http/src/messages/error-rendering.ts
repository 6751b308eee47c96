/** Converts errors to responses. No other file does this. */
import { crc32 } from 'node:zlib'
import { ApiError, errorRegistry, ReplicaError } from '@sectional/core'
import { BodyTooLargeError, BodyTooSlowError, ClientGoneError, StorageError } from '@sectional/runtime'
import { FunctionError } from './function-error.ts'
import { loginRedirect } from './login-redirect.ts'
import { sendJson } from './response.ts'
import { overloaded } from '../request/overload-error.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { admissionDeclarations } from '../settings/admission-options.ts'

/** Status that is only counted and logged, as nginx does, for a client that disconnected. */
const clientGoneStatus = 499

export function renderError(request: RequestContext, services: Services, thrown: unknown): void {
  if (isClientGone(thrown) || request.signal.aborted) return abandon(request, services, thrown)
  if (request.exchange.headersSent) return breakOff(request, services, thrown)
  const error = afterDeletion(request, services, toApiError(request, thrown))
  if (isFailure(error)) report(request, services, thrown)
  const headers: Record<string, string> = { ...error.headers }
  if (error.status === 401) challenge(request, services, headers)
  const body: Record<string, unknown> = { error: error.error, reason: error.reason, ...error.members }
  if (error.error === 'unknown_error' && !(error instanceof FunctionError)) body['ref'] = crc32(stackOf(thrown))
  const loginPage = headers['WWW-Authenticate'] === undefined ? loginRedirect(request, services, error) : null
  if (loginPage === null) return sendJson(request, services, error.status, body, headers)
  sendJson(request, services, 302, body, { ...headers, Location: loginPage })
}

/**
 * Answers with 500 and without any header that depends on the request or the configuration. It is the last resort when
 * `renderError` has thrown; without an answer the client would wait for ever.
 */
export function renderFailure(request: RequestContext): void {
  if (request.exchange.headersSent) return request.writer?.abort()
  request.status = 500
  request.exchange.send(500, { 'Content-Type': 'application/json' }, '{"error":"unknown_error","reason":"The server '
    + 'could not send its answer; its log has the reason."}\n')
}

/** Mistakes of clients and of authors of design documents for which CouchDB has status 500. */
const mistakes: ReadonlySet<string> = new Set([
  errorRegistry.invalid_list_index_params.error, errorRegistry.invalid_value.error,
  errorRegistry.unknown_query_language.error,
])

/** Returns whether the operator of the node should learn of the error. */
function isFailure(error: ApiError): boolean {
  if (error.status < 500 || error.status === 501 || error.status === 503) return false
  return !(error instanceof FunctionError) && !mistakes.has(error.error)
}

/**
 * Returns whether the error was caused by the client's disconnect, directly or through the chain of causes: a layer
 * that passes a body on wraps the error of its source.
 */
function isClientGone(thrown: unknown): boolean {
  for (let error = thrown; error instanceof Error; error = error.cause) {
    if (error instanceof ClientGoneError) return true
  }
  return false
}

/** Ends a request whose client is gone. Later errors of its work are not server errors. */
function abandon(request: RequestContext, services: Services, thrown: unknown): void {
  request.status = clientGoneStatus
  request.writer?.abort()
  request.writer = null
  services.runtime.log.debug(
    { requestId: request.requestId, route: request.route, error: String(thrown) }, 'the client is gone',
  )
}

/** Breaks the connection, so that the client sees a truncated body instead of one that seems complete. */
function breakOff(request: RequestContext, services: Services, thrown: unknown): void {
  const writer = request.writer
  request.writer = null
  writer?.abort()
  report(request, services, thrown)
}

function toApiError(request: RequestContext, thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown
  if (thrown instanceof BodyTooSlowError) return bodyTooSlow(request, thrown)
  if (thrown instanceof BodyTooLargeError) return new ApiError('too_large', undefined, { cause: thrown })
  if (thrown instanceof ReplicaError) return fromReplica(thrown)
  if (thrown instanceof StorageError) return fromStorage(thrown)
  return new ApiError(
    'unknown_error', 'The request failed inside the server; its log has the details under this request id.',
    { cause: thrown },
  )
}

function bodyTooSlow({ exchange, user }: RequestContext, cause: BodyTooSlowError): ApiError {
  const { graceMs, bytesPerSecond, signal } = exchange.bodyPace!
  if (signal?.aborted) {
    const { anonymousBodiesMax, concurrentRequestsMax } = admissionDeclarations
    return overloaded('request bodies', user.name === null ? anonymousBodiesMax : concurrentRequestsMax)
  }
  const allowed = `${graceMs / 1000} s and a second for each ${bytesPerSecond} bytes are allowed for the body`
  const advice = user.name === null ? ' Clients that send credentials have more time.' : ''
  return new ApiError('request_timeout', `The body came too slowly: ${allowed}.${advice}`, { cause })
}

/**
 * Errors that mean that no replica answered. They are expected, and not server errors, when the database was deleted
 * during the request.
 */
const withoutReplicas: ReadonlySet<string> = new Set([
  errorRegistry.internal_server_error.error, errorRegistry.service_unavailable.error, errorRegistry.timeout.error,
])

function afterDeletion(request: RequestContext, services: Services, error: ApiError): ApiError {
  const { namedDatabase } = request
  if (!withoutReplicas.has(error.error) || namedDatabase === null || !services.feeds.isGone(namedDatabase)) return error
  return new ApiError('database_missing', undefined, { cause: error })
}

function fromReplica(error: ReplicaError): ApiError {
  switch (error.code) {
    case 'overloaded':
    case 'closed':
      return new ApiError('service_unavailable', undefined, { headers: { 'Retry-After': '1' }, cause: error })
    case 'timeout':
      return new ApiError('timeout', undefined, { cause: error })
    case 'unreachable':
    case 'not_hosted':
      return new ApiError('service_unavailable', 'No DB shards could be opened.', {
        headers: { 'Retry-After': '1' }, cause: error,
      })
    default:
      return new ApiError('internal_server_error', 'No DB shards could be opened.', { cause: error })
  }
}

/** Converts an error of this node's own storage: the request was refused, or its outcome is unknown. */
function fromStorage(error: StorageError): ApiError {
  const reason = error.code === 'full'
    ? 'The disk of this node is full.'
    : `The disk of this node does not take what is to be stored (${error.code}).`
  return new ApiError('service_unavailable', `${reason} Ask another node, or try again later.`, {
    headers: { 'Retry-After': '5' }, cause: error,
  })
}

/** A challenge that a client asks for is ignored when it is longer, in characters. */
const challengeLengthMax = 1024

/**
 * Adds the WWW-Authenticate header. CouchDB does not send it by default, so that browsers do not ask for a password.
 */
function challenge(request: RequestContext, services: Services, headers: Record<string, string>): void {
  const { options } = services
  const asked = request.header('x-couchdb-www-authenticate')
  const wanted = (asked !== undefined && asked.length <= challengeLengthMax ? asked : undefined)
    ?? options.wwwAuthenticate
    ?? (options.requireValidUser ? 'Basic realm="server"' : undefined)
  if (wanted !== undefined) headers['WWW-Authenticate'] = wanted
}

function report(request: RequestContext, services: Services, thrown: unknown): void {
  const fields = { requestId: request.requestId, route: request.route, error: stackOf(thrown) }
  const isDiskFailure = thrown instanceof StorageError || (thrown instanceof ReplicaError && thrown.code === 'storage')
  if (isDiskFailure) services.diskFailures.error(thrown.code, fields, 'request failed')
  else services.runtime.log.error(fields, 'request failed')
}

function stackOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown)
  const cause = thrown.cause === undefined ? '' : `\ncaused by ${stackOf(thrown.cause)}`
  return `${thrown.stack ?? thrown.message}${cause}`
}
