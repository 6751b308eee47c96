/** The filters of a changes feed (docs/reference/changes.md#filters). */
import { attachmentsMember } from '../attachments/attachment-view.ts'
import {
  ApiError, designPrefix, isJsonObject, matchesSelector, parseFieldPaths, parseJson, parseSelector, readValue,
  SelectorError, smallJsonBytes, type ChangeRow, type FieldPath, type JsonObject, type Leaf,
} from '@sectional/core'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { PatternBudget } from './pattern-budget.ts'

export interface ChangesFilter {
  /** Whether the filter needs the document's body. */
  readonly body: boolean
  /** Paths to which an included document is projected; null includes the whole document. */
  readonly fields: readonly FieldPath[] | null
  /** Returns the given leaves that pass the filter. When none passes, the row is left out. */
  pass(row: ChangeRow, leaves: readonly Leaf[]): readonly Leaf[] | Promise<readonly Leaf[]>
}

/**
 * Returns the filter that the request names, or null when it names none.
 * @throws ApiError when the filter does not exist or its arguments are not valid
 */
export async function changesFilter(
  request: RequestContext, body: JsonObject | null, services: Services,
): Promise<ChangesFilter | null> {
  const name = request.query.get('filter')
  if (name === undefined || name === '') return null
  switch (name) {
    case '_doc_ids': {
      const ids = new Set(documentIds(request, body))
      return byId(id => ids.has(id))
    }
    case '_design': return byId(id => id.startsWith(designPrefix))
    case '_selector': return bySelector(body, request, services)
    case '_view':
      return refuseFunction('view', await designFunction(request.query.get('view'), 'view', request, services))
    default:
      if (name.startsWith('_')) throw new ApiError('bad_request', 'unknown builtin filter name')
      return refuseFunction('filter', await designFunction(name, 'filter', request, services))
  }
}

function byId(wanted: (id: string) => boolean): ChangesFilter {
  return { body: false, fields: null, pass: (row, leaves) => wanted(row.id) ? leaves : [] }
}

function documentIds(request: RequestContext, body: JsonObject | null): readonly string[] {
  const given = body === null ? request.query.json('doc_ids') : body['doc_ids']
  if (!Array.isArray(given) || !given.every(id => typeof id === 'string')) {
    throw new ApiError('bad_request', '`doc_ids` filter parameter is not a list of doc ids.')
  }
  return given
}

function bySelector(body: JsonObject | null, request: RequestContext, services: Services): ChangesFilter {
  if (body === null) throw new ApiError('bad_request', 'Selector must be specified in POST payload')
  if (!isJsonObject(body['selector'])) throw new ApiError('bad_request', 'Selector error: expected a JSON object')
  const selector = readable(() => parseSelector(body['selector']))
  const { clock, machine } = services.runtime
  const budget = new PatternBudget(clock, machine)
  const fits = (document: object): boolean => {
    budget.beginDocument()
    return readable(() => matchesSelector(selector, document, budget))
  }
  return {
    body: true, fields: fieldPaths(body['fields']),
    pass: (row, leaves) => passing(fits, row, leaves, request, services),
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
  fits: (document: object) => boolean, row: ChangeRow, leaves: readonly Leaf[], request: RequestContext,
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
): Promise<object> {
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

/**
 * Returns `path` when its design document and function exist.
 * @throws ApiError `not_found` when one of them is missing
 */
async function designFunction(
  path: string | undefined, kind: 'filter' | 'view', request: RequestContext, services: Services,
): Promise<string> {
  if (path === undefined || path === '') throw new ApiError('bad_request', '`view` filter parameter is not provided.')
  const parts = path.split('/')
  const [design, name] = parts
  if (parts.length !== 2 || !design || !name) {
    throw new ApiError('bad_request', `\`${kind}\` must be of the form \`designname/${kind}name\``)
  }
  const opened = await services.coordinator.openDocument(request.database, `_design/${design}`, {}, request)
  if (opened?.body === undefined) throw new ApiError('missing')
  if (opened.leaves[0]!.deleted) throw new ApiError('deleted')
  const document = parseJson(opened.body) as JsonObject
  const functions = document[`${kind}s`]
  if (!isJsonObject(functions)) throw new ApiError('not_found', `missing json key: ${kind}s`)
  if (!Object.hasOwn(functions, name)) throw new ApiError('not_found', `missing json key: ${name}`)
  return path
}

function refuseFunction(kind: 'filter' | 'view', path: string): never {
  const way = 'use the filters _selector, _doc_ids or _design'
  throw new ApiError(
    'not_implemented',
    `The ${kind} function ${path} cannot run: functions of design documents are not available in this version; ${way}.`,
  )
}
