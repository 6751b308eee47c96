/**
 * `_design/{name}/_list/{function}/{view}`: list functions, which make a response from the rows of a view or of all
 * documents.
 */
import { ApiError, type IndexDefinition, type JsonObject } from '@sectional/core'
import { requireLister } from '../authentication/authorization.ts'
import { openDesignFunction } from '../design-functions/design-function.ts'
import { outcomeOf, valueOf } from '../design-functions/function-call.ts'
import { sendResponse } from '../design-functions/function-response.ts'
import { readReturned } from '../design-functions/function-result.ts'
import { functionTag } from '../design-functions/function-tag.ts'
import { requestObject } from '../design-functions/request-object.ts'
import { currentDesignDocument } from '../documents/current-design-document.ts'
import { documentQuery, openDocumentRows, wholeDatabase } from '../lists/document-rows.ts'
import { listParameters } from '../lists/list-parameters.ts'
import { listBody } from '../lists/list-request.ts'
import type { ListHead } from '../lists/list-writer.ts'
import { matchesTag, sendNotModified } from '../messages/response.ts'
import type { Handler } from '../pipeline/resource.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { httpDeclarations } from '../settings/http-options.ts'
import { documentRowTexts, readListRows, viewRowTexts, type ListRows } from '../views/list-rows.ts'
import { documentsFingerprint, openView, prepareQuery, viewHead, type PreparedQuery } from '../views/view-answer.ts'
import { findDefinition, queriedView } from '../views/view-definitions.ts'
import { listedViewParameters, type QueriedView } from '../views/view-parameters.ts'

/** The methods of views and lists. */
export const viewMethods = 'GET,POST,HEAD'
/** The name in place of a view for the rows of `_all_docs`. */
const allDocuments = '_all_docs'

export const getList: Handler = (request, services) => {
  const [design, name, view] = request.params
  return list(design!, name!, design!, view!, request, services)
}

/** Lists a view of another design document. */
export const getListOfOther: Handler = (request, services) => {
  const [design, name, viewDesign, view] = request.params
  return list(design!, name!, viewDesign!, view!, request, services)
}

async function list(
  design: string, name: string, viewDesign: string, view: string, request: RequestContext, services: Services,
): Promise<void> {
  const listed = await openDesignFunction(design, 'lists', name, request, services)
  const body = await listBody(request, services)
  const source = view === allDocuments
    ? await documentSource(viewDesign, body, request, services)
    : await viewSource(viewDesign, view, body, request, services)
  let etag: string | undefined
  let rows: ListRows
  let head: ListHead
  try {
    if (request.method === 'GET') etag = functionTag(listed, source.state, request)
    if (etag !== undefined && matchesTag(request, etag)) return sendNotModified(request, services, etag)
    const limit = { bytes: services.options.listRowsBytesMax, setting: httpDeclarations.listRowsBytesMax.name }
    const opened = await source.open()
    head = opened.head
    rows = await readListRows(opened.texts, limit, request, services)
  } finally {
    await source.close()
  }
  const { total, offset, updateSequence } = head
  const headText = JSON.stringify({ total_rows: total, offset, update_seq: updateSequence })
  const argumentList = `[${headText},${await requestObject({ id: null, body }, request, services)}]`
  const { called } = listed
  const outcome = await outcomeOf(called, services.runtime.sandbox.respond(called, { argumentList, ...rows }))
  const response = await readReturned(Buffer.from(valueOf(outcome)), request, services)
  sendResponse(response, {
    textType: 'application/json',
    ...(etag !== undefined && {
      headers: source.hasFailed() ? { Vary: 'Accept' } : { ETag: etag, Vary: 'Accept' },
    }),
  }, request, services)
}

/** Rows for a list function. Documents become strings in its heap, without the contents of their attachments. */
interface RowSource {
  /** JSON values that change with the rows. */
  readonly state: readonly unknown[]
  open(): Promise<{ readonly head: ListHead; readonly texts: AsyncIterable<readonly string[]> }>
  /** Whether a row that was read tells of a failure, which may not happen again for the same state. */
  hasFailed(): boolean
  close(): Promise<void>
}

async function viewSource(
  design: string, view: string, body: JsonObject | null, request: RequestContext, services: Services,
): Promise<RowSource> {
  const definitionOf = await findDefinition(design, view, request, services)
  const prepare = (find: () => IndexDefinition): Promise<PreparedQuery> => {
    const viewOf = (): QueriedView => queriedView(find(), undefined, services)
    const asked = { ...listedViewParameters(request.query, body, viewOf), attachments: false }
    return prepareQuery(find(), asked, services)
  }
  const prepared = await prepare(definitionOf)
  const isTagged = request.method === 'GET' && prepared.parameters.includeDocs
  const documents = isTagged && await documentsFingerprint(request, services)
  const opened = await openView(
    { design, view }, prepared, async definition => prepare(() => definition), request, services,
  )
  const { parameters, answer } = opened
  let hasFailed = false
  const onFailed = (): void => { hasFailed = true }
  return {
    state: [answer.fingerprint, parameters.updateSequence && answer.updateSequence(), documents],
    open: async () => ({ head: viewHead(answer, parameters), texts: viewRowTexts(opened, onFailed) }),
    hasFailed: () => hasFailed,
    close: () => answer.close(),
  }
}

/** @throws ApiError `missing` and `deleted` for the design document that the path names */
async function documentSource(
  design: string, body: JsonObject | null, request: RequestContext, services: Services,
): Promise<RowSource> {
  const { database, user } = request
  requireLister(user, database.name)
  await currentDesignDocument(design, request, services)
  const parameters = { ...listParameters(request.query, body), attachments: false }
  const query = documentQuery(wholeDatabase, parameters, request, services)
  const { fingerprint, updateSequence } = await services.coordinator.databaseState(database, request)
  return {
    state: [fingerprint],
    open: async () => {
      const opened = await openDocumentRows(query, updateSequence, request, services)
      return { head: opened.head, texts: documentRowTexts(opened) }
    },
    hasFailed: () => false,
    close: async () => {},
  }
}

export const refuseListPath: Handler = ({ method }) => {
  if (method === 'GET' || method === 'POST') throw new ApiError('list_error')
  throw new ApiError('method_not_allowed', `Only ${viewMethods} allowed`, { headers: { Allow: viewMethods } })
}
