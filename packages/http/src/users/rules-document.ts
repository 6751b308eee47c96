/**
 * `_design/_auth` of the users database. CouchDB creates this document, and its validation function has the rules of
 * users' documents. Here the rules are part of the node (docs/decisions/0018-users-database.md), so the node shows a
 * document without functions in its place. A document that an administrator has stored under this id is shown as it is.
 */
import { ApiError, revisionHash } from '@sectional/core'
import { usersDatabase } from '@sectional/cluster'
import { documentTag, matchesTag, sendJson, sendNotModified } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

const id = '_design/_auth'
const body = {
  language: 'javascript',
  about: 'The rules of users\' documents are part of every node of Sectional and need no validation function.',
}
const revision = `1-${revisionHash({ deleted: false, parent: null, body: Buffer.from(JSON.stringify(body)) })}`

/** Tells whether the request reads the document of the rules. */
export function readsRulesDocument({ database, method, params, route }: RequestContext): boolean {
  return database.name === usersDatabase && method === 'GET' && route === 'design-document' && params[0] === id
}

/**
 * Shows the stored document, or the built-in one if none was ever stored.
 *
 * @param openStored sends the stored document
 * @throws ApiError of `openStored`, except `missing`
 */
export async function getRulesDocument(
  openStored: () => void | Promise<void>, request: RequestContext, services: Services,
): Promise<void> {
  try {
    return await openStored()
  } catch (error) {
    if (!(error instanceof ApiError) || error.reason !== 'missing' || !asksForRules(request)) throw error
  }
  const etag = documentTag(revision)
  if (matchesTag(request, etag)) return sendNotModified(request, services, etag)
  sendJson(request, services, 200, { _id: id, _rev: revision, ...body }, { ETag: etag })
}

function asksForRules({ query }: RequestContext): boolean {
  return !query.has('open_revs') && (query.get('rev') ?? revision) === revision
}
