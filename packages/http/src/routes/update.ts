/** `_design/{name}/_update/{function}`: update functions, which make a document and a response from a request. */
import { ApiError, checkDocumentId, localPrefix } from '@sectional/core'
import { resolveAttachments } from '../attachments/attachment-resolution.ts'
import { requireDesignWriter } from '../authentication/design-rights.ts'
import { openDesignFunction } from '../design-functions/design-function.ts'
import { outcomeOf, valueOf } from '../design-functions/function-call.ts'
import { functionDocument } from '../design-functions/function-document.ts'
import { sendResponse } from '../design-functions/function-response.ts'
import { readUpdate } from '../design-functions/function-result.ts'
import { readRequestBody, requestObject } from '../design-functions/request-object.ts'
import { checkDesignFunctions } from '../documents/design-functions.ts'
import { update, type Written } from '../documents/document-edit.ts'
import { checkPlacedId } from '../documents/document-reading.ts'
import { checkWrittenDocument, documentIdRules } from '../documents/document-writing.ts'
import { localRevision, updateLocal } from '../documents/local-writing.ts'
import { parseDocumentBody } from '../messages/body.ts'
import type { Handler } from '../pipeline/resource.ts'
import type { RequestContext } from '../request/request-context.ts'
import { encodeSegment } from '../request/request-path.ts'
import type { Services } from '../services/services.ts'

const allow = 'POST,PUT,DELETE'

export const postUpdate: Handler = async (request, services) => {
  const { params: [design, name, id = null] } = request
  const { called } = await openDesignFunction(design!, 'updates', name!, request, services)
  const body = await readRequestBody(request, services)
  if (id !== null) checkPlacedId(id, request)
  const document = id === null ? null : await functionDocument(id, request, services)
  const argumentList = `[${document},${await requestObject({ id, body }, request, services)}]`
  const [outcome] = await outcomeOf(called, services.runtime.sandbox.call(called, [argumentList]))
  // The response is checked before the document is written, so that a client that gets 500 has changed nothing.
  const { document: changed, response } = await readUpdate(Buffer.from(valueOf(outcome!)), request, services)
  const textType = 'text/html; charset=utf-8'
  if (changed === null) return sendResponse(response, { textType }, request, services)
  const { revision, accepted, encodedId } = await save(changed, request, services)
  sendResponse(response, {
    textType, status: accepted ? 202 : 201, acknowledgesWrite: true,
    headers: { 'X-Couch-Update-NewRev': revision, 'X-Couch-Id': encodedId },
  }, request, services)
}

interface Saved extends Written { readonly encodedId: string }

/**
 * Writes the document that a function returned, like that of a PUT request.
 *
 * @throws ApiError as the write of any document; `illegal_docid` when the document has no `_id`
 */
async function save(changed: Uint8Array, request: RequestContext, services: Services): Promise<Saved> {
  const { database } = request
  const document = await parseDocumentBody(changed, request, services)
  const id = checkDocumentId(document.id ?? '', documentIdRules(database, services))
  const encodedId = encodeSegment(id)
  const { revision: parent, deleted, body } = document
  if (id.startsWith(localPrefix)) {
    const written = await updateLocal(id.slice(localPrefix.length), parent, document, request, services, request)
    return { encodedId, revision: localRevision(written.revision), accepted: written.accepted }
  }
  await requireDesignWriter(id, parent, request, services)
  checkWrittenDocument(id, document, database, services)
  await checkDesignFunctions(id, document, request, services)
  const attachments = await resolveAttachments(id, document, { newEdits: true, parent }, request, services)
  const edit = { id, parent, deleted, body, ...(attachments && { attachments }) }
  return { encodedId, ...await update(edit, request, services, request) }
}

/** As in CouchDB, a function that does not exist is reported before the method. */
export const refuseUpdateMethod: Handler = async (request, services) => {
  const { method, params: [design, name] } = request
  await openDesignFunction(design!, 'updates', name!, request, services)
  throw new ApiError('method_not_allowed', `Update functions do not allow ${method}`, { headers: { Allow: allow } })
}

export const refuseUpdatePath: Handler = () => { throw new ApiError('update_error') }
