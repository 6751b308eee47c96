/**
 * `_local` documents (docs/reference/local-documents.md). They have revision `0-N`, no history and no attachments, and
 * the last write wins.
 */
import { ApiError, checkDocumentId, localPrefix, spliceDocument } from '@sectional/core'
import { readDocumentBody } from '../messages/body.ts'
import {
  documentIdRules, keepsRevision, namedRevision, requireRevision, writeQuorum,
} from '../documents/document-writing.ts'
import {
  answerLocal, localGeneration, localRevision, openLocalBody, writeLocalDocument,
} from '../documents/local-writing.ts'
import { documentTag, matchesTag, sendJsonText, sendNotModified } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

export async function getLocalDocument(request: RequestContext, services: Services): Promise<void> {
  const name = request.params[0]!
  const document = await services.coordinator.openLocalDocument(
    request.database, name, { r: request.query.quorum('r') }, request,
  )
  if (document === null || document.body === null) throw new ApiError('missing')
  const revision = localRevision(document.revision)
  const etag = documentTag(revision)
  if (matchesTag(request, etag)) return sendNotModified(request, services, etag)
  sendJsonText(request, services, 200, spliceDocument({ id: localPrefix + name, revision, body: document.body }), {
    ETag: etag,
  })
}

export async function putLocalDocument(request: RequestContext, services: Services): Promise<void> {
  const name = request.params[0]!
  const rules = documentIdRules(request.database, services)
  checkDocumentId(localPrefix + name, rules)
  const document = await readDocumentBody(request, services)
  if (document.id !== null) checkDocumentId(document.id, rules)
  const named = namedRevision(request, document.revision)
  if (keepsRevision(request)) requireRevision(named)
  await writeLocalDocument(name, named, document, request, services)
}

export async function deleteLocalDocument(request: RequestContext, services: Services): Promise<void> {
  const name = request.params[0]!
  await openLocalBody(name, request, services)
  const named = namedRevision(request, null)
  if (named !== null) localGeneration(named)
  const write = { id: name, revision: 0, body: null, mustExist: true }
  const outcome = await services.coordinator.updateLocalDocument(
    request.database, write, { w: writeQuorum(request), user: request.user }, request,
  )
  if (outcome.kind === 'missing') throw new ApiError('missing')
  answerLocal(name, 0, outcome.accepted ? 202 : 200, {}, request, services)
}

export function refuseLocalName(): void {
  throw new ApiError('bad_request', 'Invalid _local document id.')
}

export function refuseLocalAttachment(): void {
  throw new ApiError('bad_request', '_local documents do not accept attachments.')
}
