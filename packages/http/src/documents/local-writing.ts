/** Writes local documents. They have revision `0-N`, no history and no attachments, and the last write wins. */
import { ApiError, localPrefix, parseRevision, type ParsedDocument } from '@sectional/core'
import type { OperationContext } from '@sectional/cluster'
import { documentTag, location, sendJson } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { answerBatched, checkDocumentSize, isBatched, writeQuorum } from './document-writing.ts'

/**
 * Writes a local document and sends the response, for PUT, and for POST or COPY to a local id.
 * @param name the id without `_local/`
 */
export async function writeLocalDocument(
  name: string, named: string | null, document: ParsedDocument, request: RequestContext, services: Services,
): Promise<void> {
  const outcome = await updateLocal(name, named, document, request, services, request)
  const headers = { Location: location(request, services, request.database.name, localPrefix + name) }
  answerLocal(name, outcome.revision, outcome.accepted ? 202 : document.deleted ? 200 : 201, headers, request, services)
}

/**
 * Writes a local document. As in CouchDB, the new revision is the named one plus one and the stored revision is not
 * compared.
 *
 * @param name the id without `_local/`
 * @param named the revision that the client named, or null
 * @throws ApiError `missing` when the document to be deleted does not exist, `not_server_admin` in a users database
 * for clients who are no administrators
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
    request.database, write, { w: writeQuorum(request), user: request.user }, context,
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

/** Formats a revision number as clients see it. */
export function localRevision(revision: number): string {
  return `0-${revision}`
}

/** Returns the number of a revision `0-N`. @throws ApiError `invalid_rev_format` */
export function localGeneration(revision: string): number {
  const { generation, hash } = parseRevision(revision)
  if (generation !== 0 || !/^\d{1,15}$/.test(hash)) throw new ApiError('invalid_rev_format')
  return Number(hash)
}

/**
 * Sends the response for a local document that is already written, also for `batch=ok`. @param name the id without
 * `_local/`
 */
export function answerLocal(
  name: string, revision: number, status: number, headers: Record<string, string>, request: RequestContext,
  services: Services,
): void {
  if (isBatched(request)) return answerBatched(localPrefix + name, request, services)
  const rev = localRevision(revision)
  sendJson(request, services, status, { ok: true, id: localPrefix + name, rev }, { ...headers, ETag: documentTag(rev) })
}
