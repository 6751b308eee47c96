/** The public members of other users' documents (`chttpd_auth/users_db_public`, `public_fields`). */
import { ApiError, NamedMembers, spliceDocument } from '@sectional/core'
import { hashMembers } from '../authentication/password-hasher.ts'
import { openWinner, readFlags } from '../documents/document-reading.ts'
import { sendJsonText } from '../messages/response.ts'
import { Query } from '../request/query.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

/** Members with which somebody could log in as the user, or guess the password. */
const secretMembers: ReadonlySet<string> = new Set([...hashMembers, 'totp'])

/**
 * Sends the members of the present revision that are public. Parameters of the request have no effect, except
 * `open_revs`, whose answer would have another form. There is no ETag, because the owner of the document gets another
 * answer at the same address.
 * @throws ApiError `missing` when the document has none of them
 */
export async function getPublicMembers(request: RequestContext, services: Services): Promise<void> {
  const id = request.params[0]!
  if (request.query.has('open_revs')) {
    throw new ApiError('bad_request', 'Of the documents of other users only the present revision can be read: leave '
      + 'out open_revs.')
  }
  const shown = await openWinner(id, readFlags(Query.empty), {}, request, services)
    .catch((error: unknown) => { throw isAbsence(error) ? new ApiError('missing') : error })
  const fields = new NamedMembers(services.options.publicUserFields.filter(name => !secretMembers.has(name)))
  const body = await services.runtime.turns.run(fields.only(shown.body!))
  if (body.length === '{}'.length) throw new ApiError('missing')
  sendJsonText(request, services, 200, spliceDocument({ id, revision: shown.revision, body }))
}

function isAbsence(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404
}
