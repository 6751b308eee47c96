/** Who may write design documents: administrators of the database. */
import { ApiError, designPrefix } from '@sectional/core'
import { hasUserDocuments, type Coordinator } from '@sectional/cluster'
import type { RequestContext } from '../request/request-context.ts'
import { isDatabaseAdmin, requireDatabaseAdmin } from './authorization.ts'

/**
 * Refuses the edit of a design document by somebody else. An edit that would conflict anyway gets that answer, as one
 * that a validation function refuses does, except in databases of users, where nobody else learns which exist.
 *
 * @throws ApiError `conflict`, or that of `requireDatabaseAdmin`
 */
export async function requireDesignWriter(
  id: string, parent: string | null, request: RequestContext,
  { coordinator }: { readonly coordinator: Pick<Coordinator, 'openDocument'> },
): Promise<void> {
  const { user, database } = request
  if (!id.startsWith(designPrefix) || isDatabaseAdmin(user, database)) return
  if (hasUserDocuments(database.name)) requireDatabaseAdmin(user, database)
  const { leaves } = await coordinator.openDocument(database, id, { body: false }, request) ?? { leaves: [] }
  const wouldConflict = parent === null
    ? leaves[0]?.deleted === false
    : !leaves.some(({ revision }) => revision === parent)
  if (wouldConflict) throw new ApiError('conflict')
  requireDatabaseAdmin(user, database)
}
