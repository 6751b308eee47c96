/**
 * Requests to `_replicator` before the database exists. The setup of CouchDB creates it, so programs expect that its
 * rights hold and that it has no documents. Its documents start replications, which this version does not do: nothing
 * creates the database implicitly.
 */
import { ApiError } from '@sectional/core'
import { adminOnlySecurity } from '@sectional/cluster'
import { requireMember } from '../authentication/authorization.ts'
import type { RequestContext } from '../request/request-context.ts'

export const replicatorDatabase = '_replicator'

/** @param isWrite whether the request would change the database */
export function refuseAbsentReplicator(request: RequestContext, isWrite: boolean): never {
  requireMember(request.user, { security: adminOnlySecurity })
  if (isWrite) throw new ApiError('not_implemented', 'Writing to _replicator is not available in this version.')
  throw new ApiError(request.route === 'document' ? 'missing' : 'database_missing')
}
