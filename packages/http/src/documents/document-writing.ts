/** Converts a client's JSON into a write, and the outcome of a write into a response. */
import {
  ApiError, attachmentDigests, checkDocumentId, designPrefix, errorRegistry, formatRevision, parseRevision,
  revisionHash, type AttachmentRecord, type DocumentIdRules, type ErrorName, type ParsedDocument,
} from '@sectional/core'
import { hasUserDocuments, type DatabaseRecord, type DocumentWrite, type WriteOutcome } from '@sectional/cluster'
import { FunctionError } from '../messages/function-error.ts'
import { checkDesignDocument } from './design-document.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { sendJson, taggedRevision } from '../messages/response.ts'
import { documentTooLarge } from '../settings/size-limits.ts'

/** The ends of the names of databases whose documents start replications, which this version does not do. */
const replicatorName = /(?:^|\/)_replicator$/

export function documentIdRules(database: DatabaseRecord, services: Services): DocumentIdRules {
  const max = services.options.documentIdBytesMax
  return max === Infinity
    ? { partitioned: database.partitioned }
    : { partitioned: database.partitioned, maxLength: max }
}

/**
 * Runs the checks that apply to every document that a client writes, at every endpoint.
 * @throws ApiError
 */
export function checkWrittenDocument(
  id: string, document: ParsedDocument, database: DatabaseRecord, services: Services,
): void {
  const tooLarge = checkDocumentSize(id, document, services)
  if (tooLarge !== null) throw tooLarge
  checkDocumentContent(id, document, database, services)
}

/** Returns the error `document_too_large`, or null. */
export function checkDocumentSize(id: string, { body }: ParsedDocument, { options }: Services): ApiError | null {
  return body.length > options.documentBytesMax ? documentTooLarge(id, body.length, options.documentBytesMax) : null
}

/**
 * Runs the checks of `checkWrittenDocument` except the size check.
 * @throws ApiError
 */
export function checkDocumentContent(
  id: string, document: ParsedDocument, database: DatabaseRecord, services: Services,
): void {
  if (replicatorName.test(database.name) && !id.startsWith(designPrefix)) {
    throw new ApiError('not_implemented', `Writing documents to ${database.name} is not available in this version.`)
  }
  if (id.startsWith(designPrefix) && !document.deleted) checkDesignDocument(document.body, database)
}

/**
 * Returns the revision that the request names in the document, the query or If-Match, or null. @throws ApiError when
 * they differ
 */
export function namedRevision(request: RequestContext, documentRevision: string | null): string | null {
  const inQuery = request.query.get('rev')
  const header = request.header('if-match')
  if (inQuery === undefined && header === undefined) return documentRevision
  const queried = inQuery === undefined ? null : formatRevision(parseRevision(inQuery))
  if (queried !== null && documentRevision !== null && queried !== documentRevision) {
    throw new ApiError('bad_request', 'Document rev from request body and query string have different values')
  }
  const named = documentRevision ?? queried
  if (header === undefined) return named
  const matched = formatRevision(parseRevision(taggedRevision(header)))
  if (named !== null && named !== matched) {
    throw new ApiError('bad_request', 'Document rev and etag have different values')
  }
  return matched
}

/**
 * Returns the revision of a document that is written with `new_edits=false`.
 * @throws ApiError when the request names none
 */
export function requireRevision(named: string | null): string {
  if (named === null) {
    throw new ApiError('bad_request', 'When `new_edits: false`, the document needs `_rev` or `_revisions` specified')
  }
  return named
}

export function keepsRevision({ query }: RequestContext): boolean {
  return query.get('new_edits') === 'false'
}

/** Returns `w` of the request. COPY ignores it and uses the default quorum (docs/reference/documents.md#copy-dbid). */
export function writeQuorum({ method, query }: RequestContext): number | undefined {
  return method === 'COPY' ? undefined : query.quorum('w')
}

/**
 * Returns whether the response comes before the write (`batch=ok`). User documents are always written before it, so
 * that no password waits in memory.
 */
export function isBatched({ query, database }: RequestContext): boolean {
  return query.get('batch') === 'ok' && !hasUserDocuments(database.name)
}

/** Sends the response to `batch=ok`. */
export function answerBatched(id: string, request: RequestContext, services: Services): void {
  sendJson(request, services, 202, { ok: true, id })
}

/**
 * Returns an edit with its revision hash.
 *
 * @param parent the revision that the edit replaces; null: there is none
 * @param body text of a JSON object without special members
 * @param attachments all attachments of the new revision; absent or empty: it has none
 * @throws ApiError `invalid_rev_format` when the parent is not a revision; RangeError when the body is not valid JSON
 */
export function documentWrite(
  id: string, parent: string | null, deleted: boolean, body: Uint8Array, attachments?: readonly AttachmentRecord[],
): DocumentWrite {
  if (attachments === undefined) {
    return { id, parent, deleted, body, revisionHash: revisionHash({ deleted, parent, body }) }
  }
  return {
    id, parent, deleted, body, attachments,
    revisionHash: revisionHash({ deleted, parent, body, attachments: attachmentDigests(attachments) }),
  }
}

const comeBack = { 'Retry-After': '1' }

/**
 * Returns the written revision.
 * @throws ApiError for a conflict and for an error of the coordinator, FunctionError for the refusal of a function
 */
export function requireWritten(outcome: WriteOutcome): { readonly revision: string; readonly accepted: boolean } {
  switch (outcome.kind) {
    case 'written': return outcome
    case 'conflict': throw new ApiError('conflict')
    case 'error':
      if (outcome.byFunction) {
        const { status, error, reason, thrownReason } = outcome
        const members = thrownReason === undefined ? {} : { reason: thrownReason }
        throw new FunctionError(status, error, reason, undefined, members)
      }
      throw new ApiError(
        registryName(outcome.error, outcome.status), outcome.reason,
        outcome.status === 503 ? { headers: comeBack } : {},
      )
  }
}

function registryName(error: string, status: number): ErrorName {
  for (const [name, entry] of Object.entries(errorRegistry)) {
    if (entry.error === error && entry.status === status) return name as ErrorName
  }
  return 'internal_server_error'
}

/** Returns the id of a posted document, or a generated one when it has none. */
export function postedId(document: ParsedDocument, database: DatabaseRecord, services: Services): string {
  if (document.id === null) return checkDocumentId(services.uuids.next(), { partitioned: database.partitioned })
  return checkDocumentId(document.id, documentIdRules(database, services))
}
