/** POST, PUT, DELETE and COPY of documents. */
import {
  ApiError, checkDocumentId, designPrefix, formatRevision, localPrefix, parseRevision, type AttachmentRecord,
  type ParsedDocument,
} from '@sectional/core'
import { resolveAttachments } from '../attachments/attachment-resolution.ts'
import { MultipartDocument } from '../attachments/multipart-document.ts'
import { requireDatabaseAdmin } from '../authentication/authorization.ts'
import { requireDesignWriter } from '../authentication/design-rights.ts'
import { readDocumentBody, requireJsonType } from '../messages/body.ts'
import { checkDesignFunctions } from '../documents/design-functions.ts'
import { update, validated, writtenBody, type Edit, type Written } from '../documents/document-edit.ts'
import { checkPlacedId, noFlags, openRevision, openWinner } from '../documents/document-reading.ts'
import {
  answerBatched, checkWrittenDocument, documentIdRules, isBatched, keepsRevision, namedRevision, postedId,
  requireRevision, requireWritten, writeQuorum,
} from '../documents/document-writing.ts'
import { openLocalBody, writeLocalDocument } from '../documents/local-writing.ts'
import { decodeText } from '../request/request-path.ts'
import { documentTag, location, sendJsonText } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

const emptyBody = Buffer.from('{}')

export async function putDocument(request: RequestContext, services: Services): Promise<void> {
  const rules = documentIdRules(request.database, services)
  const id = checkDocumentId(request.params[0]!, rules)
  const multipart = MultipartDocument.isOne(request) ? await MultipartDocument.open(request, services) : null
  const document = multipart?.document ?? await readDocumentBody(request, services)
  if (document.id !== null) checkDocumentId(document.id, rules)
  const parent = namedRevision(request, document.revision)
  const newEdits = !keepsRevision(request)
  if (newEdits) await requireDesignWriter(id, parent, request, services)
  else if (id.startsWith(designPrefix)) requireDatabaseAdmin(request.user, request.database)
  checkWrittenDocument(id, document, request.database, services)
  await checkDesignFunctions(id, document, request, services)
  const attachments = await resolveAttachments(id, document, {
    newEdits, parent, ...(multipart && { takeFollowing: (entry, revposOf) => multipart.take(id, entry, revposOf) }),
  }, request, services)
  await multipart?.finish()
  if (!newEdits) return putReplicated(id, document, parent, attachments, request, services)
  const edit: Edit = { id, parent, deleted: document.deleted, body: document.body, ...(attachments && { attachments }) }
  if (isBatched(request) && multipart === null) return acceptBatched(edit, request, services)
  const written = await update(edit, request, services, request)
  answerPut(id, written, document.deleted, request, services)
}

/** Writes a document with `new_edits=false`. With `batch=ok` it is also written before the response. */
async function putReplicated(
  id: string, document: ParsedDocument, named: string | null, attachments: readonly AttachmentRecord[] | undefined,
  request: RequestContext, services: Services,
): Promise<void> {
  const { generation, hash } = parseRevision(requireRevision(named))
  const path = document.path ?? { start: generation, ids: [hash] }
  const write = { id, path, deleted: document.deleted, body: document.body, ...(attachments && { attachments }) }
  const [outcome] = await services.coordinator.storeRevisions(
    request.database, [write], { w: writeQuorum(request), user: request.user }, request,
  )
  const written = requireWritten(outcome!)
  if (isBatched(request)) return answerBatched(id, request, services)
  answerPut(id, written, document.deleted, request, services)
}

function answerPut(
  id: string, { revision, accepted }: Written, deleted: boolean, request: RequestContext, services: Services,
): void {
  const headers = { ETag: documentTag(revision), Location: location(request, services, request.database.name, id) }
  sendJsonText(request, services, accepted ? 202 : deleted ? 200 : 201, writtenBody(id, revision), headers)
}

export async function postDocument(request: RequestContext, services: Services): Promise<void> {
  requireJsonType(request)
  const { database } = request
  const document = await readDocumentBody(request, services)
  const id = postedId(document, database, services)
  if (id.startsWith(localPrefix)) {
    return writeLocalDocument(id.slice(localPrefix.length), document.revision, document, request, services)
  }
  await requireDesignWriter(id, document.revision, request, services)
  checkWrittenDocument(id, document, database, services)
  await checkDesignFunctions(id, document, request, services)
  const attachments = await resolveAttachments(
    id, document, { newEdits: true, parent: document.revision }, request, services,
  )
  const edit: Edit = {
    id, parent: document.revision, deleted: document.deleted, body: document.body, ...(attachments && { attachments }),
  }
  if (isBatched(request)) return acceptBatched(edit, request, services)
  const { revision, accepted } = await update(edit, request, services, request)
  const headers = {
    Location: location(request, services, database.name, id),
    ...(document.id === null ? {} : { ETag: documentTag(revision) }),
  }
  sendJsonText(request, services, accepted ? 202 : 201, writtenBody(id, revision), headers)
}

export async function deleteDocument(request: RequestContext, services: Services): Promise<void> {
  const id = request.params[0]!
  checkPlacedId(id, request)
  const opened = await services.coordinator.openDocument(request.database, id, { body: false }, request)
  if (opened === null) throw new ApiError('missing')
  if (opened.leaves[0]!.deleted) throw new ApiError('deleted')
  const parent = namedRevision(request, null)
  await requireDesignWriter(id, parent, request, services)
  const edit: Edit = { id, parent, deleted: true, body: emptyBody }
  if (isBatched(request)) return acceptBatched(edit, request, services)
  const { revision, accepted } = await update(edit, request, services, request)
  sendJsonText(request, services, accepted ? 202 : 200, writtenBody(id, revision), { ETag: documentTag(revision) })
}

export async function copyDocument(request: RequestContext, services: Services): Promise<void> {
  const id = request.params[0]!
  const target = copyTarget(request, services)
  checkPlacedId(id, request)
  const revision = namedRevision(request, null)
  const source = revision === null
    ? await openWinner(id, noFlags, {}, request, services)
    : await openRevision(id, revision, noFlags, undefined, request, services)
  if (source.deleted) throw new ApiError('deleted')
  await writeCopy(target, source.body, request, services, source.attachments)
}

export async function copyLocalDocument(request: RequestContext, services: Services): Promise<void> {
  const target = copyTarget(request, services)
  await writeCopy(target, await openLocalBody(request.params[0]!, request, services), request, services)
}

interface CopyTarget { readonly id: string; readonly revision: string | null }

async function writeCopy(
  target: CopyTarget, body: Uint8Array, request: RequestContext, services: Services,
  attachments?: readonly AttachmentRecord[],
): Promise<void> {
  const { id, revision: parent } = target
  const document: ParsedDocument = {
    id: null, revision: parent, path: null, deleted: false, attachments: null, body: Buffer.from(body),
  }
  if (id.startsWith(localPrefix)) {
    return writeLocalDocument(id.slice(localPrefix.length), parent, document, request, services)
  }
  await requireDesignWriter(id, parent, request, services)
  checkWrittenDocument(id, document, request.database, services)
  await checkDesignFunctions(id, document, request, services)
  if (attachments !== undefined) {
    await services.coordinator.shareBlobs(
      request.database, request.params[0]!, id, attachments.map(({ blob }) => blob), request,
    )
  }
  const edit: Edit = { id, parent, deleted: false, body, ...(attachments && { attachments }) }
  if (isBatched(request)) return acceptBatched(edit, request, services)
  answerPut(id, await update(edit, request, services, request), false, request, services)
}

/** Parses the Destination header: an encoded id with an optional `?rev=`. */
function copyTarget(request: RequestContext, services: Services): CopyTarget {
  const destination = request.header('destination')
  if (destination === undefined) throw new ApiError('bad_request', 'Destination header is mandatory for COPY.')
  if (/^https?:\/\//i.test(destination)) throw new ApiError('bad_request', 'Destination URL must be relative.')
  const [path, query] = destination.split('?', 2) as [string, string?]
  const id = checkDocumentId(decodeText(path, true), documentIdRules(request.database, services))
  if (query === undefined) return { id, revision: null }
  if (!query.startsWith('rev=')) throw new ApiError('bad_request', 'Destination may carry `?rev=` and nothing else.')
  return { id, revision: formatRevision(parseRevision(decodeText(query.slice('rev='.length), true))) }
}

/**
 * Answers `batch=ok` with 202 before the document is written. It is validated before that, because nobody reads a later
 * error. A conflict is only logged.
 */
async function acceptBatched(edit: Edit, request: RequestContext, services: Services): Promise<void> {
  const write = await validated(edit, request, services)
  await services.batches.accept(request.requestId, edit.id, edit.body.length, async context => {
    try {
      await write(context)
      return null
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) return error.reason
      throw error
    }
  })
  answerBatched(edit.id, request, services)
}
