/**
 * `_local_docs`: like `_all_docs`, but without totals. It has no ETag because local documents do not change the
 * sequence.
 */
import { localPrefix, mapBounded, type IdBound, type LocalDocument } from '@sectional/core'
import { readJsonObject } from '../messages/body.ts'
import { localRevision } from '../documents/local-writing.ts'
import { intersect, requestedRange, type IdRange } from '../lists/id-range.ts'
import { endHead, JsonWriter } from '../messages/json-writer.ts'
import { listParameters, listQueryParameters, withLimit, type ListParameters } from '../lists/list-parameters.ts'
import { listBody } from '../lists/list-request.ts'
import { rowQueries } from '../lists/row-parameters.ts'
import { ListWriter } from '../lists/list-writer.ts'
import { isHidden, shownLocalDocuments } from '../lists/shown-local-documents.ts'
import { jsonHeaders } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

const scope: IdRange = { low: { id: localPrefix, inclusive: true }, high: { id: '_local0', inclusive: false } }
const keyConcurrency = 16

export async function listLocalDocuments(request: RequestContext, services: Services): Promise<void> {
  const body = await listBody(request, services)
  const parameters = withLimit(listParameters(request.query, body), services.options.queryRowsMax)
  const headers = jsonHeaders(request, services)
  if (request.head) return endHead(request, services, headers)
  const writer = new JsonWriter(request, services, 200, headers)
  await writeList(writer, parameters, request, services)
  writer.text('\n')
  await writer.end()
}

export async function queryLocalDocuments(request: RequestContext, services: Services): Promise<void> {
  const { options: { queryRowsMax }, runtime: { turns } } = services
  const queries = rowQueries(await readJsonObject(request, services))
  const asked = await turns.map(queries, query => withLimit(listQueryParameters(request.query, query), queryRowsMax))
  const writer = new JsonWriter(request, services, 200, jsonHeaders(request, services))
  writer.text('{"results":[\r\n')
  for (const [index, parameters] of asked.entries()) {
    if (index > 0) writer.text(',\r\n')
    await turns.pause()
    request.signal.throwIfAborted()
    await writeList(writer, parameters, request, services)
  }
  writer.text('\r\n]}\n')
  await writer.end()
}

async function writeList(
  writer: JsonWriter, parameters: ListParameters, request: RequestContext, services: Services,
): Promise<void> {
  const { descending, skip, limit, includeDocs } = parameters
  const rows = new ListWriter(writer, {
    total: null, offset: null, ...(parameters.updateSequence ? { updateSequence: null } : {}),
  })
  const single = singleKey(parameters)
  if (parameters.keys !== null) {
    await writeKeys(rows, parameters.keys, parameters, request, services)
  } else if (single !== null) {
    const document = skip > 0 || limit === 0 ? null : await open(single, request, services)
    if (document !== null && document.body !== null) await localRow(rows, document, includeDocs)
  } else {
    const requested = requestedRange(parameters)
    const inScope = requested === null ? null : intersect(requested, scope)
    const range = inScope === null ? null : withoutPrefix(inScope)
    if (range !== null) {
      const shown = { range, descending, skip, limit, body: includeDocs }
      for await (const document of shownLocalDocuments(services.coordinator, shown, request)) {
        await localRow(rows, document, includeDocs)
      }
    }
  }
  rows.end()
}

/**
 * Returns the id when the range is a single id. It is read with the quorum of documents; a list asks only one replica.
 */
function singleKey({ start, end, inclusiveEnd }: ListParameters): string | null {
  return typeof start?.key === 'string' && start.key === end?.key && inclusiveEnd ? start.key : null
}

async function writeKeys(
  rows: ListWriter, keys: readonly unknown[], parameters: ListParameters, request: RequestContext, services: Services,
): Promise<void> {
  const { descending, skip, limit, includeDocs } = parameters
  const asked = (descending ? keys.toReversed() : keys).slice(skip, limit === null ? undefined : skip + limit)
  const ordered = asked.filter(key => typeof key === 'string' && key.startsWith(localPrefix))
  for (let begin = 0; begin < ordered.length; begin += keyConcurrency) {
    const window = ordered.slice(begin, begin + keyConcurrency)
    const found = await mapBounded(window, keyConcurrency, key => open(key, request, services))
    for (const [index, document] of found.entries()) {
      await (document === null ? rows.row({ unknown: window[index] }) : localRow(rows, document, includeDocs))
    }
  }
}

async function open(key: unknown, request: RequestContext, services: Services): Promise<LocalDocument | null> {
  if (typeof key !== 'string' || !key.startsWith(localPrefix)) return null
  const name = key.slice(localPrefix.length)
  return isHidden(name) ? null : services.coordinator.openLocalDocument(request.database, name, {}, request)
}

function localRow(rows: ListWriter, document: LocalDocument, includeDocs: boolean): Promise<void> | undefined {
  const id = localPrefix + document.id
  const revision = localRevision(document.revision)
  if (document.body === null) return rows.row({ unknown: id })
  const doc = includeDocs ? { id, revision, body: document.body } : undefined
  return rows.row({ id, revision, deleted: false, doc })
}

/**
 * Removes the prefix `_local/`, which replicas do not store. Returns null when the range ends before the first local
 * id.
 */
function withoutPrefix({ low, high }: IdRange): IdRange | null {
  if (high?.id === localPrefix) return null
  return { ...strip('low', low), ...strip('high', high) }
}

function strip(name: 'low' | 'high', bound: IdBound | undefined): IdRange {
  if (bound === undefined || !bound.id.startsWith(localPrefix) || bound.id === localPrefix) return {}
  return { [name]: { id: bound.id.slice(localPrefix.length), inclusive: bound.inclusive } }
}
