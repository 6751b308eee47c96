/**
 * Who may use which endpoints of databases of users. Members who are no administrators reach only the document that
 * is their own. Everything that could show other documents, such as lists and functions of design documents, is for
 * administrators.
 */
import { ApiError, designPrefix } from '@sectional/core'
import { userIdPrefix, usersDatabase } from '@sectional/cluster'
import { isDatabaseAdmin, requireDatabaseAdmin } from '../authentication/authorization.ts'
import type { HttpOptions } from '../settings/http-options.ts'
import type { RequestContext } from '../request/request-context.ts'
import { ownerOf } from '../authentication/user-account.ts'

/**
 * Checks a request to the users database. Writes are checked again for each document (`withUserDocuments`).
 *
 * @param resource name of the route
 * @returns `public` when the client may see only the public members of the document
 * @throws ApiError `missing` for documents of others, `forbidden` for design documents and queries, `not_server_admin`
 * otherwise
 */
export function checkUserDocumentAccess(
  resource: string, request: RequestContext, options: PublicUserOptions,
): 'full' | 'public' {
  if (isDatabaseAdmin(request.user, request.database)) return 'full'
  switch (resource) {
    case 'database': case 'bulk-docs': case 'security': return 'full'
    case 'document': case 'attachment': return checkDocument(request, options)
    case 'design-document': return checkDesign(request)
    case 'find':
      // The query finds only the user's own document.
      if (ownDocumentOnly(request) === null) requireDatabaseAdmin(request.user, request.database)
      return 'full'
    case 'aggregate': case 'explain': case 'index':
      requireDatabaseAdmin(request.user, request.database)
      return 'full'
    default: throw new ApiError('not_server_admin')
  }
}

/** Returns the id of the only document that queries may show to the client; null when they may show all, or none. */
export function ownDocumentOnly({ user, database }: RequestContext): string | null {
  const isLimited = database.name === usersDatabase && user.name !== null && !isDatabaseAdmin(user, database)
  return isLimited ? userIdPrefix + user.name : null
}

export type PublicUserOptions = Pick<HttpOptions, 'usersArePublic' | 'publicUserFields'>

function checkDocument(
  request: RequestContext, { usersArePublic, publicUserFields }: PublicUserOptions,
): 'full' | 'public' {
  const { method, params, route, user } = request
  const id = params[0]!
  if (id.startsWith(designPrefix)) return checkDesign(request)
  const owner = ownerOf(id)
  if (user.name !== null && owner === user.name) return 'full'
  // Anybody may register.
  if (user.name === null && method === 'PUT' && route === 'document') return 'full'
  const isPublic = usersArePublic && publicUserFields.length > 0 && owner !== null
  if (isPublic && method === 'GET' && route === 'document') return 'public'
  throw new ApiError('missing')
}

/** Refuses before the document is read, so that nobody learns which exist. COPY reads the document that it names. */
function checkDesign({ method, user, database }: RequestContext): never {
  if (method !== 'GET' && method !== 'COPY') requireDatabaseAdmin(user, database)
  throw new ApiError('forbidden', 'Only administrators can view design docs in the users database.')
}
