/** `_local` documents (api.md A5.5): revision `0-N`, last writer wins, no attachments, no history. */
import { ApiError, checkDocumentId, parseRevision, spliceDocument, type ParsedDocument } from '@sectional/core'
import type { RequestContext as CoordinatorContext } from '@sectional/cluster'
import { readDocumentBody } from '../messages/body.ts'
import {
  answerBatched, checkDocumentSize, documentIdRules, isBatched, keepsRevision, localPrefix, namedRevision, requireRevision, writeQuorum,
} from '../documents/document-writing.ts'
import { documentTag, location, matchesTag, sendJson, sendJsonText, sendNotModified } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

export async function getLocalDocument(request: RequestContext, services: Services): Promise<void> {
  const name = request.params[0]!
  const document = await services.coordinator.openLocalDocument(request.database, name, { r: request.query.quorum('r') }, request)
  if (document === null || document.body === null) throw new ApiError('missing')
  const revision = localRevision(document.revision)
  const etag = documentTag(revision)
  if (matchesTag(request, etag)) return sendNotModified(request, services, etag)
  sendJsonText(request, services, 200, spliceDocument({ id: localPrefix + name, revision, body: document.body }), { ETag: etag })
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
  const outcome = await services.coordinator.updateLocalDocument(request.database, write, { w: writeQuorum(request) }, request)
  if (outcome.kind === 'missing') throw new ApiError('missing')
  answer(name, 0, outcome.accepted ? 202 : 200, {}, request, services)
}

/** PUT, and POST or COPY to a local id. */
export async function writeLocalDocument(
  name: string, named: string | null, document: ParsedDocument, request: RequestContext, services: Services,
): Promise<void> {
  const outcome = await updateLocal(name, named, document, request, services, request)
  const headers = { Location: location(request, request.database.name, localPrefix + name) }
  answer(name, outcome.revision, outcome.accepted ? 202 : document.deleted ? 200 : 201, headers, request, services)
}

/** The new revision is the named one plus one; nothing is compared, as in CouchDB. */
export async function updateLocal(
  name: string, named: string | null, document: ParsedDocument, request: RequestContext, services: Services, context: CoordinatorContext,
): Promise<{ readonly revision: number; readonly accepted: boolean }> {
  const tooLarge = checkDocumentSize(localPrefix + name, document, services)
  if (tooLarge !== null) throw tooLarge
  const revision = document.deleted ? 0 : (named === null ? 0 : localGeneration(named)) + 1
  const write = { id: name, revision, body: document.deleted ? null : document.body, mustExist: document.deleted }
  const outcome = await services.coordinator.updateLocalDocument(request.database, write, { w: writeQuorum(request) }, context)
  if (outcome.kind === 'missing') throw new ApiError('missing')
  return { revision, accepted: outcome.accepted }
}

export async function openLocalBody(name: string, request: RequestContext, services: Services): Promise<Uint8Array> {
  const document = await services.coordinator.openLocalDocument(request.database, name, {}, request)
  if (document === null || document.body === null) throw new ApiError('missing')
  return document.body
}

export function localRevision(revision: number): string {
  return `0-${revision}`
}

function localGeneration(revision: string): number {
  const { generation, hash } = parseRevision(revision)
  if (generation !== 0 || !/^\d{1,15}$/.test(hash)) throw new ApiError('invalid_rev_format')
  return Number(hash)
}

/** By now the document is written, also with `batch=ok`. */
function answer(name: string, revision: number, status: number, headers: Record<string, string>, request: RequestContext, services: Services): void {
  if (isBatched(request)) return answerBatched(localPrefix + name, request, services)
  const rev = localRevision(revision)
  sendJson(request, services, status, { ok: true, id: localPrefix + name, rev }, { ...headers, ETag: documentTag(rev) })
}

export function refuseLocalName(): void {
  throw new ApiError('bad_request', 'Invalid _local document id.')
}

export function refuseLocalAttachment(): void {
  throw new ApiError('bad_request', '_local documents do not accept attachments.')
}
