/**
 * Who may use which endpoints of the database of users. Members who are no administrators reach only the document that
 * is their own. Everything that could show other documents, such as lists and functions of design documents, is for
 * administrators.
 */
import { ApiError, designPrefix } from '@sectional/core'
import { isDatabaseAdmin, requireDatabaseAdmin } from '../authentication/authorization.ts'
import type { RequestContext } from '../request/request-context.ts'
import { ownerOf } from '../authentication/user-account.ts'

/**
 * Checks a request to the database of users. Writes are checked again for each document (`withUserDocuments`).
 *
 * @param resource name of the route
 * @throws ApiError `missing` for documents of others, `forbidden` for design documents and queries, `not_server_admin`
 * otherwise
 */
export function checkUserDocumentAccess(resource: string, request: RequestContext): void {
  if (isDatabaseAdmin(request.user, request.database)) return
  switch (resource) {
    case 'database': case 'bulk-docs': case 'security': return
    case 'document': case 'attachment': return checkDocument(request)
    case 'design-document': return checkDesign(request)
    case 'find': case 'explain': case 'index': return requireDatabaseAdmin(request.user, request.database)
    default: throw new ApiError('not_server_admin')
  }
}

function checkDocument(request: RequestContext): void {
  const { method, params, route, user } = request
  const id = params[0]!
  if (id.startsWith(designPrefix)) return checkDesign(request)
  // Anybody may register.
  if (user.name === null && method === 'PUT' && route === 'document') return
  if (user.name === null || ownerOf(id) !== user.name) throw new ApiError('missing')
}

/** Writes of design documents are refused by their handlers. */
function checkDesign({ method }: RequestContext): void {
  if (method !== 'GET') return
  throw new ApiError('forbidden', 'Only administrators can view design docs in the users database.')
}
