/** The filter `_selector` of changes feeds (docs/reference/changes.md#selectors). */
import { attachmentsMember } from '../attachments/attachment-view.ts'
import {
  ApiError, compileSelector, isJsonObject, parseFieldPaths, parseJson, parseSelector, PatternBudget, readValue,
  SelectorError, smallJsonBytes, type ChangeRow, type FieldPath, type JsonObject, type Leaf,
} from '@sectional/core'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { shownLeaves, type ChangesFilter } from './changes-filter.ts'

/**
 * Returns the filter whose selector and fields a body contains.
 *
 * @throws ApiError `bad_request` when one of them is missing or not valid
 */
export function selectorFilter(
  body: JsonObject | null, allLeaves: boolean, request: RequestContext, services: Services,
): ChangesFilter {
  if (body === null) throw new ApiError('bad_request', 'Selector must be specified in POST payload')
  if (!isJsonObject(body['selector'])) throw new ApiError('bad_request', 'Selector error: expected a JSON object')
  const { clock, machine } = services.runtime
  const budget = new PatternBudget(clock, machine)
  const { selectorConditionsMax } = services.options
  const matches = readable(() =>
    compileSelector(parseSelector(body['selector'], selectorConditionsMax), budget.testInTime))
  const fits = (document: JsonObject): boolean => {
    budget.beginDocument()
    return readable(() => matches(document))
  }
  return {
    body: true, fields: fieldPaths(body['fields']),
    pass: async (rows, at) => {
      const row = rows[at]!
      return [await passing(fits, row, shownLeaves(row, allLeaves), request, services)]
    },
  }
}

function fieldPaths(fields: unknown): readonly FieldPath[] | null {
  if (fields === undefined) return null
  if (!Array.isArray(fields)) throw new ApiError('bad_request', 'Selector error: fields must be JSON array')
  for (const field of fields) {
    if (typeof field !== 'string') {
      throw new ApiError('bad_request', `Invalid JSON for field spec: ${JSON.stringify(field)}`)
    }
  }
  return fields.length === 0 ? null : readable(() => parseFieldPaths(fields))
}

function readable<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw error instanceof SelectorError ? new ApiError('bad_request', error.message, { cause: error }) : error
  }
}

/**
 * Returns the leaves that pass. The row contains only the winner's body, so the bodies of other leaves are read here.
 */
async function passing(
  fits: (document: JsonObject) => boolean, row: ChangeRow, leaves: readonly Leaf[], request: RequestContext,
  services: Services,
): Promise<readonly Leaf[]> {
  // Matching can take some tenths of a second, and so can parsing a large document.
  await services.runtime.turns.pause()
  const winner = row.leaves[0]!
  const matches = async (leaf: Leaf, content: FilteredContent): Promise<boolean> =>
    fits(await filteredDocument(row.id, leaf, content, services))
  if (leaves.length === 1) return await matches(winner, row) ? leaves : []
  const opened = await services.coordinator.openRevisions(
    request.database, row.id, { revisions: leaves.map(leaf => leaf.revision), latest: false, r: 1 }, request,
  )
  const passed: Leaf[] = []
  for (const [index, leaf] of leaves.entries()) {
    const found = opened?.[index]
    if (found?.kind === 'found' && await matches(leaf, found.revision)) passed.push(leaf)
    await services.runtime.turns.pause()
  }
  return passed
}

type FilteredContent = Pick<ChangeRow, 'body' | 'attachments'>

/** Returns the document that a filter is applied to. */
async function filteredDocument(
  id: string, { revision, deleted }: Leaf, { body, attachments }: FilteredContent, services: Services,
): Promise<JsonObject> {
  const members = body === undefined ? {}
    : body.length <= smallJsonBytes ? parseJson(body) as object
    : await valueOf(body, services)
  const stubs = attachments === undefined ? {} : parseJson(`{${attachmentsMember(attachments, null, false)}}`) as object
  // Assign to the parsed object itself: copying very many members would take seconds.
  return Object.assign(members, { _id: id, _rev: revision, ...(deleted && { _deleted: true }) }, stubs)
}

/** Parses a large body in slices. */
async function valueOf(body: Uint8Array, { runtime: { turns } }: Services): Promise<object> {
  const { value } = await turns.run(readValue(body, 0))
  // Matching a large document takes long too, so begin it in a new turn.
  await turns.next()
  return value
}
