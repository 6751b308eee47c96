/** GET and HEAD of a document. */
import { ApiError, formatRevision, parseRevision, type OpenedRevision } from '@sectional/core'
import type { HttpHeaders } from '@sectional/runtime'
import { piecesLength, relatedPieces, writePieces } from '../attachments/multipart-document.ts'
import {
  checkPlacedId, openRevision, openWinner, readFlags, showRelated, showRevision, shownRevision, writeRevision,
  type ReadFlags, type ShownRevision,
} from '../documents/document-reading.ts'
import { openInWindows } from '../documents/revision-windows.ts'
import { endHead, JsonWriter } from '../messages/json-writer.ts'
import { acceptsType, MultipartWriter } from '../documents/multipart-writer.ts'
import {
  documentTag, jsonHeaders, matchesTag, openStream, plainHeaders, sendJsonText, sendNotModified,
} from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

export async function getDocument(request: RequestContext, services: Services): Promise<void> {
  const id = request.params[0]!
  checkPlacedId(id, request)
  const { query } = request
  const flags = readFlags(query)
  const openRevisions = query.get('open_revs')
  if (openRevisions !== undefined) return getOpenRevisions(id, openRevisions, flags, request, services)
  const r = query.quorum('r')
  const revision = query.get('rev')
  const shown = revision === undefined
    ? await openWinner(id, flags, { r, tombstone: query.flag('deleted') }, request, services)
    : await openRevision(id, formatRevision(parseRevision(revision)), flags, r, request, services)
  const etag = documentTag(shown.revision)
  if (flags.attachments && shown.attachments !== undefined) return sendWithContent(shown, flags, request, services)
  const { json, hasMeta } = showRevision(shown, flags)
  if (hasMeta) return sendJsonText(request, services, 200, json)
  if (matchesTag(request, etag)) return sendNotModified(request, services, etag)
  sendJsonText(request, services, 200, json, { ETag: etag })
}

/**
 * Sends a document with the content of its attachments. Multipart is preferred to JSON when the Accept header allows
 * both.
 */
async function sendWithContent(
  shown: ShownRevision, flags: ReadFlags, request: RequestContext, services: Services,
): Promise<void> {
  const etag = documentTag(shown.revision)
  const { json, hasMeta, following } = showRelated(shown, flags)
  if (!hasMeta && matchesTag(request, etag)) return sendNotModified(request, services, etag)
  const tag: HttpHeaders = hasMeta ? {} : { ETag: etag }
  if (following.size === 0 || !acceptsType(request.header('accept'), 'multipart/related')) {
    const headers = { ...jsonHeaders(request, services), ...tag }
    if (request.head) return endHead(request, services, headers)
    const writer = new JsonWriter(request, services, 200, headers)
    // When no content has to be sent, the stubs show how the content is stored, as in a multipart response.
    await writeRevision(
      writer, shown, following.size === 0 ? { ...flags, encodingInfo: true } : flags, request, services,
    )
    writer.text('\n')
    return writer.end()
  }
  const boundary = services.uuids.random()
  const pieces = relatedPieces({ id: shown.id, json, following }, boundary)
  const writer = openStream(request, services, 200, {
    ...plainHeaders(request, services), ...tag,
    'Content-Type': `multipart/related; boundary="${boundary}"`, 'Content-Length': String(piecesLength(pieces)),
  })
  if (!request.head) await writePieces(pieces, shown.id, chunk => writer.write(chunk), request, services)
  writer.end()
  request.writer = null
}

async function getOpenRevisions(
  id: string, asked: string, flags: ReadFlags, request: RequestContext, services: Services,
): Promise<void> {
  const revisions = asked === 'all' ? 'leaves' : namedRevisions(request)
  const r = request.query.quorum('r')
  const opened = openInWindows({ id, revisions, latest: flags.latest, r }, request, services)
  // Errors of the first window have a status; those of others end the answer.
  const first = await opened.next()
  const items = continued(first, opened)
  if (acceptsType(request.header('accept'), 'multipart/mixed')) return sendMultipart(items, flags, request, services)
  const writer = new JsonWriter(request, services, 200, jsonHeaders(request, services))
  writer.text('[')
  let separator = ''
  for await (const item of items) {
    writer.text(separator)
    separator = ','
    if (item.kind === 'missing') writer.text(JSON.stringify({ missing: item.revision }))
    else {
      writer.text('{"ok":')
      await writeRevision(writer, shownRevision(item.revision), flags, request, services)
      writer.text('}')
    }
    await writer.flushFull()
  }
  writer.text(']\n')
  await writer.end()
}

async function sendMultipart(
  items: AsyncGenerator<OpenedRevision>, flags: ReadFlags, request: RequestContext, services: Services,
): Promise<void> {
  const writer = new MultipartWriter(request, services, 'multipart/mixed')
  for await (const item of items) {
    if (item.kind === 'missing') await writer.errorPart({ missing: item.revision })
    else await writer.revisionPart(shownRevision(item.revision), flags)
  }
  await writer.end()
}

async function* continued(
  first: IteratorResult<OpenedRevision>, rest: AsyncGenerator<OpenedRevision>,
): AsyncGenerator<OpenedRevision> {
  if (first.done === true) return
  yield first.value
  yield* rest
}

function namedRevisions(request: RequestContext): readonly string[] {
  const revisions = request.query.json('open_revs')
  if (!Array.isArray(revisions)) throw new ApiError('bad_request', 'Invalid list of revisions')
  return revisions.map(revision => formatRevision(parseRevision(revision)))
}
