/** Finds the route of a request, checks access to it, and runs its handler. */
import { ApiError, checkDatabaseName, designPrefix, localPrefix } from '@sectional/core'
import { hasUserDocuments, type DatabaseRecord } from '@sectional/cluster'
import {
  requireAuthenticated, requireLister, requireMaintenanceAdmin, requireMember, requireMetricsReader,
  requireServerAdmin,
} from '../authentication/authorization.ts'
import { originOf } from '../audit/audit.ts'
import { origin, sendRedirect } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Access, Resource } from './resource.ts'
import { refuseAbsentReplicator, replicatorDatabase } from './absent-replicator.ts'
import type { Match, Router } from './router.ts'
import { readPartitioned } from '../request/partitioned-parameter.ts'
import { splitTarget } from '../request/request-path.ts'
import type { Services } from '../services/services.ts'
import { checkUserDocumentAccess } from '../users/user-document-access.ts'
import { getPublicMembers } from '../users/public-user-document.ts'
import { getRulesDocument, readsRulesDocument } from '../users/rules-document.ts'
import { futureUsers } from '../users/users-database.ts'

export interface Routes {
  readonly server: Router<Resource>
  /** Routes of paths below a database, without its name. */
  readonly database: Router<Resource>
  /** The resource `/{db}`. */
  readonly databaseRoot: Resource
}

/** Names of databases that begin with an underscore. */
const systemDatabases = new Set(['_users', replicatorDatabase, '_global_changes', '_metadata'])
/** Those that the cluster keeps for itself. Their security objects admit nobody else than server administrators. */
const internalDatabases = new Set(['_global_changes', '_metadata'])
const listPaths = new Set(['_all_docs', '_changes'])

export function dispatch(routes: Routes, request: RequestContext, services: Services): void | Promise<void> {
  requireUser(request, services)
  const first = request.segments[0]
  if (first === undefined || first === 'favicon.ico' || (first.startsWith('_') && !systemDatabases.has(first))) {
    return dispatchServer(routes, request, services)
  }
  return dispatchDatabase(routes, first, request, services)
}

/** Refuses anonymous users when `require_valid_user` is set. */
function requireUser(request: RequestContext, services: Services): void {
  const { options } = services
  if (request.user.name !== null || !(options.requireValidUser || options.requireValidUserExceptForUp)) return
  const [first, ...more] = request.segments
  if (more.length === 0 && first === '_session' && request.method === 'POST') return
  if (more.length === 0 && first === '_up' && options.requireValidUserExceptForUp) return
  throw new ApiError('unauthorized', 'Authentication required.')
}

function dispatchServer(routes: Routes, request: RequestContext, services: Services): void | Promise<void> {
  const { method, segments, user } = request
  const match = routes.server.match(segments, 0)
  if (match === null) {
    if (segments[0] === '_utils' && (method === 'GET' || method === 'HEAD')) throw new ApiError('missing')
    requireServerAdmin(user)
    const known = routes.server.hasLiteral(segments[0]!)
    if (!known && segments.length === 1 && (method === 'PUT' || method === 'DELETE')) {
      checkDatabaseName(segments[0]!)
      // Reached only for names that begin with an underscore and are not a system database.
      if (method === 'PUT') readPartitioned(segments[0]!, request.query)
    }
    throw known ? new ApiError('missing') : new ApiError('database_missing')
  }
  request.params = match.params
  request.route = match.resource.name
  checkServerAccess(match.resource.access, request, services)
  if (match.resource.access === 'database-list') requireService(request, services)
  return handle(match.resource, request, services)
}

function checkServerAccess(access: Access, { user }: RequestContext, services: Services): void {
  switch (access) {
    case 'public': return
    case 'metrics': return requireMetricsReader(user)
    case 'authenticated': return requireAuthenticated(user)
    case 'database-list': return services.options.adminOnlyAllDatabases ? requireServerAdmin(user) : undefined
    default: return requireServerAdmin(user)
  }
}

function dispatchDatabase(
  routes: Routes, name: string, request: RequestContext, services: Services,
): void | Promise<void> {
  const { segments, method } = request
  const match = segments.length === 1
    ? { resource: routes.databaseRoot, params: [name] }
    : routes.database.match(documentSegments(segments, method), 1)
  request.route = match?.resource.name ?? 'unknown'
  requireService(request, services)
  if (segments.length === 1 && (method === 'PUT' || method === 'DELETE')) {
    requireServerAdmin(request.user)
    request.params = [name]
    return handle(routes.databaseRoot, request, services)
  }
  // Events name all databases, like the endpoints that are for server administrators.
  if (internalDatabases.has(name)) requireServerAdmin(request.user)
  if (listPaths.has(segments[1] ?? '')) requireLister(request.user, name)
  const database = services.control.state()?.databases.get(name)
  return database === undefined
    ? dispatchUnknown(name, match, request, services)
    : dispatchKnown(database, match, request, services)
}

/** @throws ApiError `service_unavailable` with the reason when this node must not serve the request */
function requireService(request: RequestContext, { control }: Services): void {
  const reason = isWrite(request) ? control.writesRefusedReason() : control.unavailableReason()
  if (reason !== null) throw new ApiError('service_unavailable', reason, { headers: { 'Retry-After': '1' } })
}

/** Routes whose POST requests write documents. Other POST requests to a database read, or start maintenance. */
const writingPosts = new Set(['database', 'document', 'design-document', 'bulk-docs', 'index', 'purge', 'update'])

function isWrite({ method, route }: RequestContext): boolean {
  switch (method) {
    case 'GET': case 'HEAD': return false
    case 'POST': return writingPosts.has(route)
    default: return true
  }
}

/** The database is not in this node's state, but another node may have just created it: ask the control plane. */
async function dispatchUnknown(
  name: string, match: Match<Resource> | null, request: RequestContext, services: Services,
): Promise<void> {
  const database = await services.control.confirmAbsent(name)
  if (database !== undefined) return dispatchKnown(database, match, request, services)
  if (name === replicatorDatabase) return refuseAbsentReplicator(request, isWrite(request))
  const future = match === null || !isWrite(request) ? undefined
    : futureUsers(name, originOf(request), request.user, services)
  if (future === undefined) throw new ApiError('database_missing')
  await dispatchKnown(future, match, request, { ...services, coordinator: services.futureCoordinator })
}

function dispatchKnown(
  database: DatabaseRecord, match: Match<Resource> | null, request: RequestContext, services: Services,
): void | Promise<void> {
  request.database = database
  checkDatabaseAccess(match?.resource.access ?? 'member', request, database)
  if (request.method === 'GET' && request.segments[1]?.startsWith(designPrefix)) {
    return redirectToPlainSlash(request, services)
  }
  if (match === null) throw new ApiError('missing')
  const { idPrefix } = match.resource
  request.params = idPrefix === undefined ? match.params : [idPrefix + match.params[0], ...match.params.slice(1)]
  if (hasUserDocuments(database.name)
    && checkUserDocumentAccess(match.resource.name, request, services.options) === 'public') {
    return getPublicMembers(request, services)
  }
  if (readsRulesDocument(request)) {
    return getRulesDocument(() => handle(match.resource, request, services), request, services)
  }
  return handle(match.resource, request, services)
}

function checkDatabaseAccess(access: Access, { user }: RequestContext, database: DatabaseRecord): void {
  switch (access) {
    case 'server-admin': return requireServerAdmin(user)
    case 'maintenance': return requireMaintenanceAdmin(user, database)
    default: return requireMember(user, database)
  }
}

/** Splits `_design%2Fx` and `_local%2Fx` into two segments, so that they match like `_design/x` and `_local/x`. */
function documentSegments(segments: readonly string[], method: string): readonly string[] {
  const id = segments[1]!
  if (!id.startsWith('_')) return segments
  const prefix = id.startsWith(localPrefix) ? localPrefix
    : id.startsWith(designPrefix) && method !== 'GET' ? designPrefix
    : null
  if (prefix === null || id.length === prefix.length) return segments
  return [segments[0]!, prefix.slice(0, -1), id.slice(prefix.length), ...segments.slice(2)]
}

const encodedDesign = /\/_design%2f/i

function redirectToPlainSlash(request: RequestContext, services: Services): void {
  const { path, search } = splitTarget(request.exchange.target)
  const plain = path.replace(encodedDesign, '/_design/')
  sendRedirect(request, services, 301, `${origin(request, services)}${plain}${search === '' ? '' : `?${search}`}`)
}

function handle(resource: Resource, request: RequestContext, services: Services): void | Promise<void> {
  const handler = Object.hasOwn(resource.methods, request.method)
    ? resource.methods[request.method]
    : resource.methods['*']
  if (handler === undefined) {
    throw new ApiError('method_not_allowed', `Only ${resource.allow} allowed`, { headers: { Allow: resource.allow } })
  }
  return handler(request, services)
}
