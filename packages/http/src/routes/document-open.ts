/** GET and HEAD of a document. */
import { ApiError, checkDocumentId, formatRevision, parseRevision, type OpenedRevision } from '@sectional/core'
import { openRevision, openWinner, readFlags, showRevision, type ReadFlags } from '../document-reading.ts'
import { JsonWriter } from '../json-writer.ts'
import { acceptsMultipart, MultipartWriter } from '../multipart-writer.ts'
import { documentTag, jsonHeaders, matchesTag, sendJsonText, sendNotModified } from '../response.ts'
import type { RequestContext } from '../request-context.ts'
import type { Services } from '../services.ts'

export async function getDocument(request: RequestContext, services: Services): Promise<void> {
  const id = request.params[0]!
  if (request.database.partitioned && !id.startsWith('_')) checkDocumentId(id, { partitioned: true })
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
  const { json, hasMeta } = showRevision(shown, flags)
  if (hasMeta) return sendJsonText(request, services, 200, json)
  if (matchesTag(request, etag)) return sendNotModified(request, services, etag)
  sendJsonText(request, services, 200, json, { ETag: etag })
}

async function getOpenRevisions(id: string, asked: string, flags: ReadFlags, request: RequestContext, services: Services): Promise<void> {
  const revisions = asked === 'all' ? 'leaves' : namedRevisions(request)
  const r = request.query.quorum('r')
  const opened = await services.coordinator.openRevisions(request.database, id, { revisions, latest: flags.latest, r }, request)
  if (opened === null) throw new ApiError('missing')
  if (acceptsMultipart(request.header('accept'), 'multipart/mixed')) return sendMultipart(id, opened, flags, request, services)
  const writer = new JsonWriter(request, services, 200, jsonHeaders(request, services))
  writer.text('[')
  for (const [index, item] of opened.entries()) {
    if (index > 0) writer.text(',')
    if (item.kind === 'missing') writer.text(JSON.stringify({ missing: item.revision }))
    else {
      writer.text('{"ok":')
      writer.bytes(showOpened(id, item, flags))
      writer.text('}')
    }
    await writer.flushFull()
  }
  writer.text(']\n')
  await writer.end()
}

async function sendMultipart(id: string, opened: readonly OpenedRevision[], flags: ReadFlags, request: RequestContext, services: Services): Promise<void> {
  const writer = new MultipartWriter(request, services, 'multipart/mixed')
  for (const item of opened) {
    if (item.kind === 'missing') await writer.errorPart({ missing: item.revision })
    else await writer.documentPart(showOpened(id, item, flags))
  }
  await writer.end()
}

function showOpened(id: string, item: Extract<OpenedRevision, { kind: 'found' }>, flags: ReadFlags): Buffer {
  const { path, deleted, body } = item.revision
  const revision = formatRevision({ generation: path.start, hash: path.ids[0]! })
  return showRevision({ id, revision, deleted, body, path }, flags).json
}

function namedRevisions(request: RequestContext): readonly string[] {
  const revisions = request.query.json('open_revs')
  if (!Array.isArray(revisions)) throw new ApiError('bad_request', '`open_revs` must be `all` or a JSON array of revisions.')
  return revisions.map(revision => formatRevision(parseRevision(revision)))
}
