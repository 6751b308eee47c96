/** The rows of `_all_docs` and `_design_docs`: what a list contains, and the documents in it. */
import { ApiError } from '@sectional/core'
import type { DatabaseState, ListedDocument, OpenedDocument } from '@sectional/cluster'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { beginning, directed, intersect, rangeHolds, requestedRange, type IdRange } from './id-range.ts'
import { documentsPerLookup, includedDocument } from './included-document.ts'
import { withLimit, type ListParameters } from './list-parameters.ts'
import type { DocumentRow, ListHead } from './list-writer.ts'

/** The part of a database that a list contains. */
export interface Scope {
  readonly range: IdRange
  readonly partition?: string
  /** Whether totals and offsets count only the rows of the range. */
  readonly countsRange: boolean
}

export const wholeDatabase: Scope = { range: {}, countsRange: false }
export const designDocuments: Scope = {
  range: { low: { id: '_design/', inclusive: true }, high: { id: '_design0', inclusive: false } }, countsRange: true,
}

export function onePartition(partition: string): Scope {
  const range = { low: { id: `${partition}:`, inclusive: true }, high: { id: `${partition};`, inclusive: false } }
  return { range, partition, countsRange: false }
}

export interface DocumentQuery { readonly parameters: ListParameters; readonly scope: Scope }

/**
 * Returns the parameters with a limit that the options allow, and what they list.
 *
 * @param within what the path of the request names
 * @throws ApiError `query_parse_error`
 */
export function documentQuery(
  within: Scope, parameters: ListParameters, request: RequestContext, { options }: Services,
): DocumentQuery {
  const scope = placed(within, parameters, request)
  const max = scope.partition === undefined ? options.queryRowsMax : options.partitionQueryRowsMax
  return { scope, parameters: withLimit(parameters, max) }
}

/** Returns the partition that the parameters name as the scope, or the given scope. */
function placed(scope: Scope, { partition }: ListParameters, { database }: RequestContext): Scope {
  if (partition === undefined || scope.partition !== undefined) return scope
  if (!database.partitioned) {
    throw new ApiError('query_parse_error', '`partition` parameter is not supported on this db')
  }
  return scope === wholeDatabase ? onePartition(partition) : scope
}

export interface DocumentRows { readonly head: ListHead; readonly rows: AsyncIterable<readonly DocumentRow[]> }

/** Begins a list. @param updateSequence of a state that the rows include, for those who ask for it */
export async function openDocumentRows(
  query: DocumentQuery, updateSequence: DatabaseState['updateSequence'], request: RequestContext, services: Services,
): Promise<DocumentRows> {
  const { parameters, scope } = query
  if (parameters.keys !== null) return openKeys(parameters.keys, query, request, services)
  const requested = requestedRange(parameters)
  const range = requested === null ? null : intersect(requested, scope.range)
  const { descending, skip, includeDocs, conflicts } = parameters
  const reached = parameters.updateSequence ? { updateSequence: await updateSequence() } : {}
  const documents = await services.coordinator.listDocuments(request.database, {
    ...(range === null ? { start: beginning(parameters, scope.range) } : directed(range, descending)),
    descending, skip,
    limit: range === null ? 0 : parameters.limit,
    body: includeDocs, leaves: includeDocs && conflicts, partition: scope.partition,
  }, request)
  const whole = scope.countsRange
    ? await countRange(scope.range, descending, request, services)
    : { total: documents.total, offset: 0 }
  const offset = Math.max(0, Math.min(documents.offset - whole.offset, whole.total))
  return {
    head: { total: whole.total, offset, ...reached }, rows: listedRows(documents.rows, parameters, request, services),
  }
}

async function* listedRows(
  pages: AsyncIterable<readonly ListedDocument[]>, parameters: ListParameters, request: RequestContext,
  services: Services,
): AsyncGenerator<readonly DocumentRow[], void, undefined> {
  for await (const page of pages) {
    yield page.map((document): DocumentRow => {
      const { id, revision } = document
      const doc = parameters.includeDocs ? includedDocument(document, parameters, request, services) : undefined
      return { id, revision, deleted: false, doc }
    })
  }
}

/** Counts the rows of a range, and returns the offset of the first. */
async function countRange(
  range: IdRange, descending: boolean, request: RequestContext, services: Services,
): Promise<{ readonly total: number; readonly offset: number }> {
  const documents = await services.coordinator.listDocuments(request.database, {
    ...directed(range, descending), descending, skip: 0, limit: null, body: false, leaves: false,
  }, request)
  let total = 0
  for await (const page of documents.rows) total += page.length
  return { total, offset: documents.offset }
}

async function openKeys(
  keys: readonly unknown[], query: DocumentQuery, request: RequestContext, services: Services,
): Promise<DocumentRows> {
  return {
    head: {
      total: await total(query.scope, request, services), offset: null,
      ...(query.parameters.updateSequence ? { updateSequence: null } : {}),
    },
    rows: keyRows(keys, query, request, services),
  }
}

async function* keyRows(
  keys: readonly unknown[], { parameters, scope }: DocumentQuery, request: RequestContext, services: Services,
): AsyncGenerator<readonly DocumentRow[], void, undefined> {
  const { descending, skip, limit, includeDocs } = parameters
  const ordered = (descending ? keys.toReversed() : keys).slice(skip, limit === null ? undefined : skip + limit)
  // `_design_docs` skips keys that are not design documents. In a partition, other keys are reported as unknown.
  const isId = (key: unknown): key is string => typeof key === 'string' && rangeHolds(scope.range, key)
  for (let begin = 0; begin < ordered.length; begin += documentsPerLookup) {
    // Yield between pages: lookups of keys that are certainly absent never wait.
    await services.runtime.turns.pause()
    const page = ordered.slice(begin, begin + documentsPerLookup)
    const window = scope.countsRange ? page.filter(isId) : page
    const ids = [...new Set(window.filter(isId))]
    const opened = ids.length === 0
      ? []
      : await services.coordinator.openDocuments(request.database, ids, { body: includeDocs }, request)
    const found = new Map(ids.map((id, index) => [id, opened[index] ?? null]))
    yield window.map((key): DocumentRow => {
      const document = typeof key === 'string' ? found.get(key) : undefined
      return document === undefined || document === null
        ? { unknown: key } : keyRow(key as string, document, parameters, request, services)
    })
  }
}

function keyRow(
  id: string, document: OpenedDocument, parameters: ListParameters, request: RequestContext, services: Services,
): DocumentRow {
  const { includeDocs, conflicts } = parameters
  const { revision, deleted } = document.leaves[0]!
  if (!includeDocs || deleted) return { id, revision, deleted, doc: includeDocs ? null : undefined }
  const { body, attachments } = document
  const listed = { id, revision, body, attachments, leaves: conflicts ? document.leaves : undefined }
  return { id, revision, deleted, doc: includedDocument(listed, parameters, request, services) }
}

async function total(scope: Scope, request: RequestContext, services: Services): Promise<number> {
  if (scope.countsRange) return (await countRange(scope.range, false, request, services)).total
  const { total } = await services.coordinator.listDocuments(request.database, {
    ...directed(scope.range, false), descending: false, skip: 0, limit: 0, body: false, leaves: false,
    partition: scope.partition,
  }, request)
  return total
}
