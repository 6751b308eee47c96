/** Browser form uploads: POST `multipart/form-data` to a document (docs/reference/documents.md#post-dbid). */
import {
  ApiError, checkDocumentId, designPrefix, formatRevision, parseRevision, type AttachmentRecord, type ParsedDocument,
} from '@sectional/core'
import { checkAttachmentName, defaultContentType } from '../attachments/attachment-entries.ts'
import { takeAttachment } from '../attachments/attachment-intake.ts'
import { resolveAttachments } from '../attachments/attachment-resolution.ts'
import { wholePart } from '../attachments/multipart-document.ts'
import { boundaryOf, headerParameter, MultipartReader } from '../attachments/multipart-reader.ts'
import { requireDatabaseAdmin } from '../authentication/authorization.ts'
import { parseDocumentBody, requestChunks } from '../messages/body.ts'
import { checkDesignFunctions } from '../documents/design-functions.ts'
import { openBase, update, writtenBody } from '../documents/document-edit.ts'
import { checkWrittenDocument, documentIdRules, namedRevision } from '../documents/document-writing.ts'
import { documentTag, sendJsonText } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

interface Form {
  readonly document: ParsedDocument | null
  readonly revision: string | null
  readonly files: ReadonlyMap<string, AttachmentRecord>
}

export async function postDocumentForm(request: RequestContext, services: Services): Promise<void> {
  requireSameSite(request)
  const type = request.header('content-type')
  if (!type?.toLowerCase().startsWith('multipart/form-data')) {
    throw new ApiError('bad_content_type', 'Content-Type must be multipart/form-data')
  }
  const boundary = boundaryOf(type)
  if (boundary === null) throw new ApiError('bad_request', 'multipart/form-data needs a boundary in its Content-Type.')
  const id = checkDocumentId(request.params[0]!, documentIdRules(request.database, services))
  if (id.startsWith(designPrefix)) requireDatabaseAdmin(request.user, request.database)
  const { document, revision, files } = await readForm(
    id, new MultipartReader(requestChunks(request, services), boundary), request, services,
  )
  const parent = document === null ? revision : namedRevision(request, document.revision)
  const base = document === null ? await openBase(id, parent, request, services)
    : {
      body: document.body, deleted: document.deleted,
      attachments: await resolveAttachments(id, document, { newEdits: true, parent }, request, services) ?? [],
    }
  const revpos = parent === null ? 1 : parseRevision(parent).generation + 1
  const attachments = [
    ...Array.from(files.values(), file => ({ ...file, revpos })),
    ...base.attachments.filter(({ name }) => !files.has(name)),
  ]
  const edit = { id, parent, deleted: base.deleted, body: base.body, ...(attachments.length > 0 && { attachments }) }
  const written = await update(edit, request, services, request)
  sendJsonText(request, services, written.accepted ? 202 : 201, writtenBody(id, written.revision), {
    ETag: documentTag(written.revision),
  })
}

/** Refuses forms of other sites, which could otherwise write with the rights of the user who visits them. */
function requireSameSite({ sent: { headers } }: RequestContext): void {
  const { referer, host } = headers
  if (referer === undefined) throw new ApiError('bad_request', 'Referer header required.')
  if (!URL.canParse(referer) || new URL(referer).host !== host) {
    throw new ApiError('bad_request', 'Referer header must match host.')
  }
}

async function readForm(
  id: string, reader: MultipartReader, request: RequestContext, services: Services,
): Promise<Form> {
  let document: ParsedDocument | null = null
  let revision: string | null = null
  const files = new Map<string, AttachmentRecord>()
  for (let part = await reader.next(); part !== null; part = await reader.next()) {
    const disposition = part.headers.get('content-disposition')
    switch (headerParameter(disposition, 'name')) {
      case '_doc':
        document = await parseDocumentBody(await wholePart(part, request, services), request, services)
        checkWrittenDocument(id, document, request.database, services)
        await checkDesignFunctions(id, document, request, services)
        break
      case '_rev': {
        revision = formatRevision(
          parseRevision(Buffer.from(await wholePart(part, request, services)).toString('utf8').trim()),
        )
        break
      }
      case '_attachments': {
        // A browser sends an unnamed, empty file when the user chose none.
        const name = headerParameter(disposition, 'filename')
        if (name === undefined || name === '') break
        checkAttachmentName(name)
        if (files.has(name)) throw new ApiError('bad_request', 'Duplicate attachments')
        const contentType = part.headers.get('content-type') ?? defaultContentType
        files.set(name, await takeAttachment(
          id, { name, contentType, encoding: 'identity', revpos: 0 }, part.body, request, services,
        ))
        break
      }
      default: break
    }
  }
  await reader.finish()
  return { document, revision, files }
}
