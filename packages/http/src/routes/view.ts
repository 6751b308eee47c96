/** `_design/{name}/_view/{view}`, with `/queries`, also in a partition. */
import { ApiError, type IndexDefinition } from '@sectional/core'
import { requireDatabaseAdmin } from '../authentication/authorization.ts'
import { listBody, taggedHeaders } from '../lists/list-request.ts'
import { pathPartition } from '../lists/path-partition.ts'
import { rowQueries } from '../lists/row-parameters.ts'
import { readJsonObject, requireJsonType } from '../messages/body.ts'
import { endHead, JsonWriter } from '../messages/json-writer.ts'
import { jsonHeaders } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import { documentsFingerprint, openView, prepareQuery, type PreparedQuery } from '../views/view-answer.ts'
import { findDefinition, queriedView, type ViewName } from '../views/view-definitions.ts'
import type { Handler } from '../pipeline/resource.ts'
import type { Services } from '../services/services.ts'
import { viewParameters, viewQueryParameters } from '../views/view-parameters.ts'
import { tryView } from '../views/view-trial.ts'

/** The view that a path names. */
interface ViewPath extends ViewName { readonly partition?: string }

export const listView: Handler = (request, services) => list(pathOfView(request), request, services)
export const queryView: Handler = (request, services) => queries(pathOfView(request), request, services)
export const listPartitionView: Handler = async (request, services) =>
  list(pathInPartition(request), request, services)
export const queryPartitionView: Handler = async (request, services) =>
  queries(pathInPartition(request), request, services)

function pathOfView({ params: [design, view] }: RequestContext): ViewPath {
  return { design: design!, view: view! }
}

/** @throws ApiError as `pathPartition` */
function pathInPartition(request: RequestContext): ViewPath {
  const [, design, view] = request.params
  return { design: design!, view: view!, partition: pathPartition(request) }
}

async function list(path: ViewPath, request: RequestContext, services: Services): Promise<void> {
  if (isDryRun(request)) return dryRun(path, request, services)
  const { design, view, partition } = path
  const definitionOf = await findDefinition(design, view, request, services)
  const body = await listBody(request, services)
  const prepare = async (find: () => IndexDefinition): Promise<PreparedQuery> => {
    const asked = viewParameters(request.query, body, () => queriedView(find(), partition, services))
    const prepared = await prepareQuery(find(), asked, services)
    return request.head ? { ...prepared, query: { ...prepared.query, limit: 0 } } : prepared
  }
  const prepared = await prepare(definitionOf)
  const documents = prepared.parameters.includeDocs ? await documentsFingerprint(request, services) : ''
  const opened = await openView(path, prepared, definition => prepare(() => definition), request, services)
  try {
    const { parameters, answer: { fingerprint, updateSequence } } = opened
    const state = `${fingerprint}\n${documents}\n${parameters.updateSequence ? updateSequence() : ''}`
    const headers = taggedHeaders(state, JSON.stringify(parameters), request, services)
    if (headers === null) return
    if (request.head) return endHead(request, services, headers)
    const writer = new JsonWriter(request, services, 200, headers)
    await opened.write(writer)
    writer.text('\n')
    await writer.end()
  } finally {
    await opened.answer.close()
  }
}

function isDryRun({ query }: RequestContext): boolean {
  return query.get('dry_run') === 'true'
}

/** A view that is not saved may be run by those who may save it. */
async function dryRun(
  { design, view, partition }: ViewPath, request: RequestContext, services: Services,
): Promise<void> {
  if (partition !== undefined || request.query.has('partition')) {
    throw new ApiError('bad_request', '`dry_run` needs the path of a view without a partition')
  }
  const body = await listBody(request, services)
  if (body === null) throw new ApiError('bad_request', '`dry_run` needs a POST request')
  if (body['map'] !== undefined) requireDatabaseAdmin(request.user, request.database)
  await tryView(design, view, body, request, services)
}

/** Answers several queries. The answer has no ETag, because each query is begun when the previous one was written. */
async function queries(path: ViewPath, request: RequestContext, services: Services): Promise<void> {
  const { design, view, partition } = path
  const { turns } = services.runtime
  if (isDryRun(request)) throw new ApiError('bad_request', '`dry_run` is not possible with `queries`')
  const definitionOf = await findDefinition(design, view, request, services)
  requireJsonType(request)
  const members = rowQueries(await readJsonObject(request, services))
  const definition = definitionOf()
  const queried = queriedView(definition, partition, services)
  const all = await turns.map(members, member => viewQueryParameters(request.query, member, queried))
  const prepared: PreparedQuery[] = []
  for (const parameters of all) {
    await turns.pause()
    prepared.push(await prepareQuery(definition, parameters, services))
  }
  let current = definition
  const prepareAgain = async (member: object, changed: IndexDefinition): Promise<PreparedQuery> => {
    current = changed
    const parameters = viewQueryParameters(request.query, member, queriedView(changed, partition, services))
    return prepareQuery(changed, parameters, services)
  }
  const writer = new JsonWriter(request, services, 200, jsonHeaders(request, services))
  writer.text('{"results":[\r\n')
  for (const [index, query] of prepared.entries()) {
    if (index > 0) writer.text(',\r\n')
    await turns.pause()
    request.signal.throwIfAborted()
    const again = (changed: IndexDefinition): Promise<PreparedQuery> => prepareAgain(members[index]!, changed)
    // The queries behind one that has begun again are for the same definition.
    const first = current === definition ? query : await again(current)
    const opened = await openView(path, first, again, request, services)
    try {
      await opened.write(writer)
    } finally {
      await opened.answer.close()
    }
    await writer.flushFull()
  }
  writer.text('\r\n]}\n')
  await writer.end()
}
