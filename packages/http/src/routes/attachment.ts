/** Attachments as resources of their own (docs/reference/attachments.md). */
import {
  ApiError, checkDocumentId, formatRevision, parseRevision, type AttachmentRecord, type BlobSpan,
  type ParsedDocument,
} from '@sectional/core'
import type { HttpHeaders } from '@sectional/runtime'
import { checkAttachmentName, defaultContentType } from '../attachments/attachment-entries.ts'
import { takeAttachment } from '../attachments/attachment-intake.ts'
import { identityContent } from '../attachments/attachment-view.ts'
import { byteRanges, contentRange } from '../attachments/byte-ranges.ts'
import { headerType } from '../attachments/multipart-document.ts'
import { requireDesignWriter } from '../authentication/design-rights.ts'
import { requestChunks } from '../messages/body.ts'
import { openBase, update, writtenBody, type EditBase } from '../documents/document-edit.ts'
import { checkPlacedId, noFlags, openRevision, openWinner } from '../documents/document-reading.ts'
import { checkWrittenDocument, documentIdRules, namedRevision } from '../documents/document-writing.ts'
import { location, matchesTag, openStream, plainHeaders, sendJsonText, sendNotModified,
  withoutSniffing } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { checkAttachmentHeads } from '../settings/size-limits.ts'

export async function getAttachment(request: RequestContext, services: Services): Promise<void> {
  const [id, name] = request.params as [string, string]
  checkPlacedId(id, request)
  const revision = request.query.get('rev')
  const r = request.query.quorum('r')
  const { attachments = [] } = revision === undefined
    ? await openWinner(id, noFlags, { r, tombstone: request.query.flag('deleted') }, request, services)
    : await openRevision(
      id, formatRevision(parseRevision(revision)), { ...noFlags, latest: request.query.flag('latest') }, r, request,
      services,
    )
  const record = attachments.find(attachment => attachment.name === name)
  if (record === undefined) throw new ApiError('missing_attachment')
  const etag = `"${record.digest}"`
  if (matchesTag(request, etag)) return sendNotModified(request, services, etag)
  if (record.encoding === 'gzip') return sendCompressed(id, record, etag, request, services)
  const ranges = byteRanges(request.header('range'), record.length)
  if (ranges !== null && ranges.length > 1) return sendRanges(id, record, ranges, request, services)
  const [span] = ranges ?? []
  const content = services.coordinator.readBlob(request.database, id, record, span ?? null, request)
  const headers = attachmentHeaders(record, etag, request, services)
  if (span === undefined) {
    return sendContent(content, 200, { ...headers, 'Content-Length': String(record.length) }, request, services)
  }
  const partial = {
    'Content-Range': contentRange(span, record.length), 'Content-Length': String(span.end - span.start),
  }
  return sendContent(content, 206, { ...headers, ...partial }, request, services)
}

function attachmentHeaders(
  record: AttachmentRecord, etag: string, request: RequestContext, services: Services,
): HttpHeaders {
  return {
    ...plainHeaders(request, services),
    'ETag': etag, 'Content-Type': headerType(record.contentType), 'Cache-Control': 'must-revalidate',
    'Accept-Ranges': record.encoding === 'identity' ? 'bytes' : 'none', ...policy(services),
  }
}

/** Returns the headers that prevent browsers from running scripts of an attachment. */
function policy({ options }: Services): HttpHeaders {
  return options.sandboxAttachments
    ? { ...withoutSniffing, 'Content-Security-Policy': options.attachmentPolicy }
    : withoutSniffing
}

function sendCompressed(
  id: string, record: AttachmentRecord, etag: string, request: RequestContext, services: Services,
): Promise<void> {
  const headers = attachmentHeaders(record, etag, request, services)
  if (!acceptsGzip(request.header('accept-encoding'))) {
    return sendContent(
      identityContent(id, record, request, services), 200, { ...headers, 'Content-Length': String(record.length) },
      request, services,
    )
  }
  const stored = services.coordinator.readBlob(request.database, id, record, null, request)
  return sendContent(
    stored, 200, { ...headers, 'Content-Encoding': 'gzip', 'Content-Length': String(record.storedLength) }, request,
    services,
  )
}

function acceptsGzip(accept: string | undefined): boolean {
  return (accept ?? '').split(',').some(range => {
    const [name, ...parameters] = range.split(';').map(part => part.trim().toLowerCase())
    return (name === 'gzip' || name === '*') && !parameters.some(parameter => /^q=0(?:\.0*)?$/.test(parameter))
  })
}

/**
 * Sends content. The headers are sent with the first chunk, so that an error of reading it still becomes an error
 * response.
 */
async function sendContent(
  content: AsyncIterable<Uint8Array>, status: number, headers: HttpHeaders, request: RequestContext,
  services: Services,
): Promise<void> {
  if (request.head) {
    openStream(request, services, status, headers).end()
    request.writer = null
    return
  }
  const chunks = content[Symbol.asyncIterator]()
  try {
    let next = await chunks.next()
    const writer = openStream(request, services, status, headers)
    for (; !next.done; next = await chunks.next()) await writer.write(next.value)
    writer.end()
    request.writer = null
  } finally {
    await chunks.return?.()
  }
}

async function sendRanges(
  id: string, record: AttachmentRecord, ranges: readonly BlobSpan[], request: RequestContext, services: Services,
): Promise<void> {
  const boundary = services.uuids.random()
  const writer = openStream(request, services, 206, {
    ...plainHeaders(request, services), 'Content-Type': `multipart/byteranges; boundary="${boundary}"`,
    ...policy(services),
  })
  for (const span of request.head ? [] : ranges) {
    const type = headerType(record.contentType)
    await writer.write(
      `\r\n--${boundary}\r\nContent-Type: ${type}\r\nContent-Range: ${contentRange(span, record.length)}\r\n\r\n`,
    )
    for await (const chunk of services.coordinator.readBlob(request.database, id, record, span, request)) {
      await writer.write(chunk)
    }
  }
  if (!request.head) await writer.write(`\r\n--${boundary}--`)
  writer.end()
  request.writer = null
}

export async function putAttachment(request: RequestContext, services: Services): Promise<void> {
  const [id, name] = request.params as [string, string]
  checkDocumentId(id, documentIdRules(request.database, services))
  checkAttachmentName(name)
  const encoding = contentEncoding(request)
  const parent = namedRevision(request, null)
  await requireDesignWriter(id, parent, request, services)
  const base = await openBase(id, parent, request, services)
  checkBase(id, base, request, services)
  const record = await takeAttachment(id, {
    name, encoding, contentType: request.header('content-type') ?? defaultContentType,
    revpos: parent === null ? 1 : parseRevision(parent).generation + 1,
    digest: request.header('content-md5')?.trim() ?? null,
  }, requestChunks(request, services), request, services)
  const attachments = [record, ...base.attachments.filter(attachment => attachment.name !== name)]
  checkAttachmentHeads(id, attachments)
  const { revision, accepted } = await update(
    { id, parent, deleted: base.deleted, body: base.body, attachments }, request, services, request,
  )
  sendJsonText(request, services, accepted ? 202 : 201, writtenBody(id, revision), {
    Location: location(request, services, request.database.name, id, name),
  })
}

function contentEncoding(request: RequestContext): 'identity' | 'gzip' {
  switch (request.header('content-encoding')?.trim().toLowerCase()) {
    case undefined: case '': case 'identity': return 'identity'
    case 'gzip': return 'gzip'
    default: throw new ApiError('bad_content_type', 'Only gzip and identity content-encodings are supported')
  }
}

function checkBase(id: string, { body, deleted }: EditBase, request: RequestContext, services: Services): void {
  const document: ParsedDocument = {
    id, revision: null, path: null, deleted, attachments: null, body: Buffer.from(body),
  }
  checkWrittenDocument(id, document, request.database, services)
}

export async function deleteAttachment(request: RequestContext, services: Services): Promise<void> {
  const [id, name] = request.params as [string, string]
  checkPlacedId(id, request)
  checkAttachmentName(name)
  const parent = namedRevision(request, null)
  const base = parent === null
    ? await openWinner(id, noFlags, {}, request, services)
    : await openBase(id, parent, request, services)
  const { body, deleted, attachments = [] } = base
  if (!attachments.some(attachment => attachment.name === name)) throw new ApiError('missing_attachment')
  if (parent === null) throw new ApiError('conflict')
  await requireDesignWriter(id, parent, request, services)
  const rest = attachments.filter(attachment => attachment.name !== name)
  const { revision } = await update(
    { id, parent, deleted, body, ...(rest.length > 0 && { attachments: rest }) }, request, services, request,
  )
  sendJsonText(request, services, 200, writtenBody(id, revision))
}
