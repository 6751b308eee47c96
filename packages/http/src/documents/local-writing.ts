/** Writes of local documents: revision `0-N`, the last writer wins, no attachments, no history. */
import { ApiError, parseRevision, type ParsedDocument } from '@sectional/core'
import type { OperationContext } from '@sectional/cluster'
import { documentTag, location, sendJson } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { answerBatched, checkDocumentSize, isBatched, localPrefix, writeQuorum } from './document-writing.ts'

/** Writes a local document and answers, for PUT and for POST or COPY to a local id. @param name without `_local/` */
export async function writeLocalDocument(
  name: string, named: string | null, document: ParsedDocument, request: RequestContext, services: Services,
): Promise<void> {
  const outcome = await updateLocal(name, named, document, request, services, request)
  const headers = { Location: location(request, request.database.name, localPrefix + name) }
  answerLocal(name, outcome.revision, outcome.accepted ? 202 : document.deleted ? 200 : 201, headers, request, services)
}

/**
 * Writes a local document. The new revision is the named one plus one; nothing is compared, as in CouchDB.
 *
 * @param name without `_local/` @param named the revision that the client named, or null
 * @throws ApiError `missing` for the deletion of a document that does not exist
 */
export async function updateLocal(
  name: string, named: string | null, document: ParsedDocument, request: RequestContext, services: Services,
  context: OperationContext,
): Promise<{ readonly revision: number; readonly accepted: boolean }> {
  const tooLarge = checkDocumentSize(localPrefix + name, document, services)
  if (tooLarge !== null) throw tooLarge
  const revision = document.deleted ? 0 : (named === null ? 0 : localGeneration(named)) + 1
  const write = { id: name, revision, body: document.deleted ? null : document.body, mustExist: document.deleted }
  const outcome = await services.coordinator.updateLocalDocument(
    request.database, write, { w: writeQuorum(request) }, context,
  )
  if (outcome.kind === 'missing') throw new ApiError('missing')
  return { revision, accepted: outcome.accepted }
}

/** @throws ApiError `missing` */
export async function openLocalBody(name: string, request: RequestContext, services: Services): Promise<Uint8Array> {
  const document = await services.coordinator.openLocalDocument(request.database, name, {}, request)
  if (document === null || document.body === null) throw new ApiError('missing')
  return document.body
}

/** The revision as clients know it. */
export function localRevision(revision: number): string {
  return `0-${revision}`
}

/** @throws ApiError `invalid_rev_format` */
export function localGeneration(revision: string): number {
  const { generation, hash } = parseRevision(revision)
  if (generation !== 0 || !/^\d{1,15}$/.test(hash)) throw new ApiError('invalid_rev_format')
  return Number(hash)
}

/** Answers for a local document that is written already, also with `batch=ok`. @param name without `_local/` */
export function answerLocal(
  name: string, revision: number, status: number, headers: Record<string, string>, request: RequestContext,
  services: Services,
): void {
  if (isBatched(request)) return answerBatched(localPrefix + name, request, services)
  const rev = localRevision(revision)
  sendJson(request, services, status, { ok: true, id: localPrefix + name, rev }, { ...headers, ETag: documentTag(rev) })
}
