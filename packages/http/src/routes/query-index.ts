/** `_index`: the indexes that `_find` uses (docs/reference/find.md#get-db_index). */
import { ApiError } from '@sectional/core'
import { requireDatabaseAdmin } from '../authentication/authorization.ts'
import { parseBulkDelete, designId, parseIndexRequest } from '../find/index-request.ts'
import { addIndex, removeIndexes } from '../find/index-writing.ts'
import { allDocumentsIndex, listedIndex, storedIndexes } from '../find/stored-indexes.ts'
import { readJsonObject, requireJsonType } from '../messages/body.ts'
import { sendJson } from '../messages/response.ts'
import { nonNegativeInteger, type Query } from '../request/query.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

/** Lists all indexes. `limit` and `skip` select some of them. */
export async function getIndexes(request: RequestContext, services: Services): Promise<void> {
  const limit = listParameter(request.query, 'limit', 1, Infinity)
  const skip = listParameter(request.query, 'skip', 0, 0)
  const indexes = [allDocumentsIndex, ...(await storedIndexes(request, services)).map(listedIndex)]
  sendJson(request, services, 200, { total_rows: indexes.length, indexes: indexes.slice(skip, skip + limit) })
}

/** @throws ApiError `query_parse_error`; `invalid_list_index_params` for a number below `least` */
function listParameter(query: Query, name: string, least: number, otherwise: number): number {
  const text = query.get(name)
  if (text === undefined) return otherwise
  const value = text.startsWith('-') ? -1 : nonNegativeInteger(text)
  if (value < least) throw new ApiError('invalid_list_index_params')
  return value
}

export async function postIndex(request: RequestContext, services: Services): Promise<void> {
  requireJsonType(request)
  const asked = parseIndexRequest(
    await readJsonObject(request, services), services.options.selectorConditionsMax,
  )
  requireDatabaseAdmin(request.user, request.database)
  const result = await addIndex(asked, request, services)
  sendJson(request, services, 200, { result, id: asked.ddoc, name: asked.name })
}

export async function deleteIndex(request: RequestContext, services: Services): Promise<void> {
  const [design, type, name] = request.params
  requireDatabaseAdmin(request.user, request.database)
  const isFound = type === 'json' && await removeIndexes(
    designId(design!), index => index.name === name, request.query.quorum('w'), request, services,
  )
  if (!isFound) throw new ApiError('missing')
  sendJson(request, services, 200, { ok: true })
}

/** Removes all indexes of some design documents, one document after the other. */
export async function deleteIndexes(request: RequestContext, services: Services): Promise<void> {
  requireJsonType(request)
  const { ids, w } = parseBulkDelete(await readJsonObject(request, services))
  requireDatabaseAdmin(request.user, request.database)
  const success: object[] = []
  const fail: object[] = []
  for (const id of ids) {
    try {
      const isFound = await removeIndexes(id, () => true, w, request, services)
      if (isFound) success.push({ id, ok: true })
      else fail.push({ id, error: 'not_found' })
    } catch (error) {
      // The others are removed all the same, and the client learns which ones were.
      if (!(error instanceof ApiError)) throw error
      fail.push({ id, error: error.error })
    }
  }
  sendJson(request, services, 200, { success, fail })
}
