/** `_design/{name}/_show/{function}`: show functions, which make a response from a document. */
import { ApiError } from '@sectional/core'
import { openDesignFunction } from '../design-functions/design-function.ts'
import { outcomeOf, valueOf } from '../design-functions/function-call.ts'
import { functionDocument } from '../design-functions/function-document.ts'
import { sendResponse } from '../design-functions/function-response.ts'
import { readReturned } from '../design-functions/function-result.ts'
import { functionTag } from '../design-functions/function-tag.ts'
import { readRequestBody, requestObject } from '../design-functions/request-object.ts'
import { checkPlacedId } from '../documents/document-reading.ts'
import { matchesTag, sendNotModified } from '../messages/response.ts'
import type { Handler } from '../pipeline/resource.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

export const getShow: Handler = async (request, services) => {
  const { params: [design, name, id = null] } = request
  const shown = await openDesignFunction(design!, 'shows', name!, request, services)
  const document = id === null ? null : await openedDocument(id, request, services)
  const etag = request.method === 'GET' ? functionTag(shown, [document], request) : undefined
  if (etag !== undefined && matchesTag(request, etag)) return sendNotModified(request, services, etag)
  const body = await readRequestBody(request, services)
  const argumentList = `[${document},${await requestObject({ id, body }, request, services)}]`
  const { called } = shown
  const outcome = await outcomeOf(called, services.runtime.sandbox.respond(called, { argumentList }))
  if (outcome.kind !== 'value' && document === null && id !== null) {
    throw new ApiError('not_found', 'document not found')
  }
  const response = await readReturned(Buffer.from(valueOf(outcome)), request, services)
  sendResponse(response, {
    textType: 'text/html; charset=utf-8',
    ...(etag !== undefined && { headers: { ETag: etag, Vary: 'Accept' } }),
  }, request, services)
}

function openedDocument(id: string, request: RequestContext, services: Services): Promise<string | null> {
  checkPlacedId(id, request)
  return functionDocument(id, request, services)
}

export const refuseShowPath: Handler = () => { throw new ApiError('show_error') }
