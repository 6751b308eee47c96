/** `_all_docs`, `_design_docs` and `_partition/{p}/_all_docs`, with `/queries` (docs/reference/lists.md). */
import { createHash } from 'node:crypto'
import { ApiError, checkPartition } from '@sectional/core'
import type { DatabaseState, OpenedDocument } from '@sectional/cluster'
import { readJsonObject } from '../messages/body.ts'
import { beginning, directed, intersect, rangeHolds, requestedRange, type IdRange } from '../lists/id-range.ts'
import { endHead, JsonWriter } from '../messages/json-writer.ts'
import { documentsPerLookup, includedDocument } from '../lists/included-document.ts'
import { listParameters, listQueryParameters, withLimit, type ListParameters } from '../lists/list-parameters.ts'
import { listBody, taggedHeaders } from '../lists/list-request.ts'
import { pathPartition } from '../lists/path-partition.ts'
import { rowQueries } from '../lists/row-parameters.ts'
import { ListWriter } from '../lists/list-writer.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Handler } from '../pipeline/resource.ts'
import type { Services } from '../services/services.ts'

/** The part of a database that a list contains. */
interface Scope {
  readonly range: IdRange
  readonly partition?: string
  /** Whether totals and offsets count only the rows of the range. */
  readonly countsRange: boolean
}

const wholeDatabase: Scope = { range: {}, countsRange: false }
const designDocuments: Scope = {
  range: { low: { id: '_design/', inclusive: true }, high: { id: '_design0', inclusive: false } }, countsRange: true,
}

function partitionScope(request: RequestContext): Scope {
  return onePartition(pathPartition(request))
}

function onePartition(partition: string): Scope {
  const range = { low: { id: `${partition}:`, inclusive: true }, high: { id: `${partition};`, inclusive: false } }
  return { range, partition, countsRange: false }
}

interface Asked { readonly parameters: ListParameters; readonly scope: Scope }

/** Returns the parameters with a limit that the options allow, and what they list. @throws ApiError `query_parse_error` */
function asked(within: Scope, parameters: ListParameters, request: RequestContext, { options }: Services): Asked {
  const scope = placed(within, parameters, request)
  const max = scope.partition === undefined ? options.queryRowsMax : options.partitionQueryRowsMax
  return { scope, parameters: withLimit(parameters, max) }
}

/** Returns the partition that the parameters name as the scope, or the given scope. */
function placed(scope: Scope, { partition }: ListParameters, { database }: RequestContext): Scope {
  if (partition === undefined || scope.partition !== undefined) return scope
  checkPartition(partition)
  if (!database.partitioned) {
    throw new ApiError('query_parse_error', '`partition` parameter is not supported on this db')
  }
  return scope === wholeDatabase ? onePartition(partition) : scope
}

export const listAllDocuments: Handler = (request, services) => list(wholeDatabase, request, services)
export const listDesignDocuments: Handler = (request, services) => list(designDocuments, request, services)
export const listPartition: Handler = (request, services) => list(partitionScope(request), request, services)
export const queryAllDocuments: Handler = (request, services) => queries(wholeDatabase, request, services)
export const queryDesignDocuments: Handler = (request, services) => queries(designDocuments, request, services)
export const queryPartition: Handler = (request, services) => queries(partitionScope(request), request, services)

async function list(within: Scope, request: RequestContext, services: Services): Promise<void> {
  const body = await listBody(request, services)
  const { parameters, scope } = asked(within, listParameters(request.query, body), request, services)
  const { updateSequence, fingerprint } = await services.coordinator.databaseState(request.database, request)
  const headers = taggedHeaders(fingerprint, JSON.stringify(parameters), request, services)
  if (headers === null) return
  if (request.head) return endHead(request, services, headers)
  const writer = new JsonWriter(request, services, 200, headers)
  await writeList(writer, parameters, scope, updateSequence, request, services)
  writer.text('\n')
  await writer.end()
}

async function queries(within: Scope, request: RequestContext, services: Services): Promise<void> {
  const { turns } = services.runtime
  const digest = createHash('md5')
  // Read them in slices: there may be a hundred thousand queries.
  const all = await turns.map(rowQueries(await readJsonObject(request, services)), query => {
    const parameters = listQueryParameters(request.query, query)
    digest.update(JSON.stringify(parameters))
    return asked(within, parameters, request, services)
  })
  const { updateSequence, fingerprint } = await services.coordinator.databaseState(request.database, request)
  const headers = taggedHeaders(fingerprint, digest.digest('hex'), request, services)
  if (headers === null) return
  const writer = new JsonWriter(request, services, 200, headers)
  writer.text('{"results":[\r\n')
  for (const [index, { parameters, scope }] of all.entries()) {
    if (index > 0) writer.text(',\r\n')
    await turns.pause()
    request.signal.throwIfAborted()
    await writeList(writer, parameters, scope, updateSequence, request, services)
    await writer.flushFull()
  }
  writer.text('\r\n]}\n')
  await writer.end()
}

async function writeList(
  writer: JsonWriter, parameters: ListParameters, scope: Scope, updateSequence: DatabaseState['updateSequence'],
  request: RequestContext, services: Services,
): Promise<void> {
  if (parameters.keys !== null) return writeKeys(writer, parameters.keys, parameters, scope, request, services)
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
  const rows = new ListWriter(writer, {
    total: whole.total, offset: Math.max(0, Math.min(documents.offset - whole.offset, whole.total)), ...reached,
  })
  for await (const page of documents.rows) {
    for (const document of page) {
      const doc = includeDocs ? includedDocument(document, parameters, request, services) : undefined
      const full = rows.row(document.id, document.revision, false, doc)
      if (full !== undefined) await full
    }
  }
  rows.end()
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

async function writeKeys(
  writer: JsonWriter, keys: readonly unknown[], parameters: ListParameters, scope: Scope,
  request: RequestContext, services: Services,
): Promise<void> {
  const { descending, skip, limit, includeDocs } = parameters
  const ordered = (descending ? keys.toReversed() : keys).slice(skip, limit === null ? undefined : skip + limit)
  const rows = new ListWriter(writer, {
    total: await total(scope, request, services), offset: null,
    ...(parameters.updateSequence ? { updateSequence: null } : {}),
  })
  for (let begin = 0; begin < ordered.length; begin += documentsPerLookup) {
    // Yield between pages: lookups of keys that are certainly absent never wait.
    await services.runtime.turns.pause()
    const page = ordered.slice(begin, begin + documentsPerLookup)
    // `_design_docs` skips keys that are not design documents. In a partition, other keys are reported as unknown.
    const isId = (key: unknown): key is string => typeof key === 'string' && rangeHolds(scope.range, key)
    const window = scope.countsRange ? page.filter(isId) : page
    const ids = [...new Set(window.filter(isId))]
    const opened = ids.length === 0
      ? []
      : await services.coordinator.openDocuments(request.database, ids, { body: includeDocs }, request)
    const found = new Map(ids.map((id, index) => [id, opened[index] ?? null]))
    for (const key of window) {
      const document = typeof key === 'string' ? found.get(key) : undefined
      await (document === undefined || document === null
        ? rows.unknownKey(key)
        : keyRow(rows, key as string, document, parameters, request, services))
    }
  }
  rows.end()
}

function keyRow(
  rows: ListWriter, id: string, document: OpenedDocument, parameters: ListParameters,
  request: RequestContext, services: Services,
): Promise<void> | undefined {
  const { includeDocs, conflicts } = parameters
  const { revision, deleted } = document.leaves[0]!
  if (!includeDocs) return rows.row(id, revision, deleted, undefined)
  if (deleted) return rows.row(id, revision, deleted, null)
  const { body, attachments } = document
  const listed = { id, revision, body, attachments, leaves: conflicts ? document.leaves : undefined }
  return rows.row(id, revision, deleted, includedDocument(listed, parameters, request, services))
}

async function total(scope: Scope, request: RequestContext, services: Services): Promise<number> {
  if (scope.countsRange) return (await countRange(scope.range, false, request, services)).total
  const { total } = await services.coordinator.listDocuments(request.database, {
    ...directed(scope.range, false), descending: false, skip: 0, limit: 0, body: false, leaves: false,
    partition: scope.partition,
  }, request)
  return total
}
