/** Finds the filter that the request of a changes feed names (docs/reference/changes.md#filters). */
import { ApiError, designPrefix, type JsonObject } from '@sectional/core'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { rowFilter, type ChangesFilter, type ShownRevisions } from './changes-filter.ts'
import { filterFunction, namesIn, viewFunction } from './filter-function.ts'
import { FunctionFilter } from './function-filter.ts'
import { selectorFilter } from './selector-filter.ts'

/** The filters whose arguments the body of a POST contains. All others accept an empty body. */
const bodyFilters: ReadonlySet<string> = new Set(['_doc_ids', '_selector'])

/** The body of a request for changes: the bytes that the client sent, and their members. */
export interface ChangesBody { readonly bytes: Uint8Array; readonly members: JsonObject }

/**
 * Returns the filter that the request names, or null when it names none.
 *
 * @param body null for a GET request
 * @throws ApiError when the filter does not exist, its function does not compile, or its arguments are not valid
 */
export async function chooseFilter(
  request: RequestContext, body: ChangesBody | null, shown: ShownRevisions, services: Services,
): Promise<ChangesFilter | null> {
  const { allLeaves } = shown
  const name = request.query.get('filter')
  if (name === undefined || namesIn(name).length === 0) return null
  const members = body?.members ?? null
  if (body?.bytes.length === 0 && bodyFilters.has(name)) throw new ApiError('invalid_json')
  switch (name) {
    case '_doc_ids': {
      const ids = new Set(documentIds(request, members))
      return rowFilter(({ id }) => ids.has(id), allLeaves)
    }
    case '_design': return rowFilter(({ id }) => id.startsWith(designPrefix), allLeaves)
    case '_selector': return selectorFilter(members, allLeaves, request, services)
    case '_view': {
      const called = await viewFunction(request.query.get('view'), request, services)
      return new FunctionFilter(called, shown, request, services)
    }
    default: {
      if (name.startsWith('_')) throw new ApiError('bad_request', 'unknown builtin filter name')
      const called = await filterFunction(name, body?.bytes ?? null, request, services)
      return new FunctionFilter(called, shown, request, services)
    }
  }
}

function documentIds(request: RequestContext, body: JsonObject | null): readonly string[] {
  const given = body === null ? request.query.json('doc_ids') : body['doc_ids']
  if (!Array.isArray(given) || !given.every(id => typeof id === 'string')) {
    throw new ApiError('bad_request', '`doc_ids` filter parameter is not a list of doc ids.')
  }
  return given
}
