/** `_design/{name}/_list/{function}/{view}`: list functions, which make a response from the rows of a view. */
import { ApiError } from '@sectional/core'
import { openDesignFunction, type DesignFunction } from '../design-functions/design-function.ts'
import { outcomeOf, valueOf } from '../design-functions/function-call.ts'
import { sendResponse } from '../design-functions/function-response.ts'
import { readReturned } from '../design-functions/function-result.ts'
import { functionTag } from '../design-functions/function-tag.ts'
import { requestObject } from '../design-functions/request-object.ts'
import { listBody } from '../lists/list-request.ts'
import { matchesTag, sendNotModified } from '../messages/response.ts'
import type { Handler } from '../pipeline/resource.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { httpDeclarations } from '../settings/http-options.ts'
import { readListRows, type ListRows } from '../views/list-rows.ts'
import { documentsFingerprint, openView, prepareQuery, viewHead, type OpenedView } from '../views/view-answer.ts'
import { openDefinition, queriedView } from '../views/view-definitions.ts'
import { viewParameters, type ViewParameters } from '../views/view-parameters.ts'

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
  const definition = await openDefinition(viewDesign, view, request, services)
  // Documents become strings in the heap of the function, without the contents of their attachments.
  const queried = queriedView(definition, undefined, services)
  const parameters = { ...viewParameters(request.query, body, queried), attachments: false }
  const opened = await openView(await prepareQuery(definition, parameters, services), request, services)
  let etag: string | undefined
  let rows: ListRows
  try {
    if (request.method === 'GET') etag = await listTag(listed, opened, parameters, request, services)
    if (etag !== undefined && matchesTag(request, etag)) return sendNotModified(request, services, etag)
    const limit = { bytes: services.options.listRowsBytesMax, setting: httpDeclarations.listRowsBytesMax.name }
    rows = await readListRows(opened, limit, request, services)
  } finally {
    await opened.answer.close()
  }
  const { total, offset, updateSequence } = viewHead(opened.answer, parameters)
  const head = JSON.stringify({ total_rows: total, offset, update_seq: updateSequence })
  const argumentList = `[${head},${await requestObject({ id: null, body }, request, services)}]`
  const { called } = listed
  const outcome = await outcomeOf(called, services.runtime.sandbox.respond(called, { argumentList, ...rows }))
  const response = await readReturned(Buffer.from(valueOf(outcome)), request, services)
  sendResponse(response, {
    textType: 'application/json',
    ...(etag !== undefined && { headers: { ETag: etag, Vary: 'Accept' } }),
  }, request, services)
}

async function listTag(
  listed: DesignFunction, { answer }: OpenedView, { includeDocs, updateSequence }: ViewParameters,
  request: RequestContext, services: Services,
): Promise<string> {
  const read = [
    answer.fingerprint, updateSequence && answer.updateSequence(),
    includeDocs && await documentsFingerprint(request, services),
  ]
  return functionTag(listed, read, request)
}

export const refuseListPath: Handler = () => { throw new ApiError('list_error') }
