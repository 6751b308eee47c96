/** `_bulk_get`: many revisions in one request, as JSON or multipart (docs/reference/bulk.md#post-db_bulk_get). */
import {
  ApiError, checkDocumentId, checkIdBytes, formatRevision, isJsonObject, openedRevisionBytes, parseRevision,
  readRevision, type DocumentIdRules, type JsonObject, type OpenedRevision,
} from '@sectional/core'
import { readJsonObject, requireJsonType } from '../messages/body.ts'
import {
  readFlags, shownRevision, splicedRevision, writeRevision, type ReadFlags, type ShownRevision,
} from '../documents/document-reading.ts'
import { documentIdRules } from '../documents/document-writing.ts'
import { openInWindows } from '../documents/revision-windows.ts'
import { JsonWriter } from '../messages/json-writer.ts'
import { acceptsType, MultipartWriter } from '../documents/multipart-writer.ts'
import { jsonHeaders } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { httpDeclarations } from '../settings/http-options.ts'
import { tooMany } from '../settings/size-limits.ts'

const refusedParameters = ['open_revs', 'new_edits', 'w', 'rev', 'atts_since']
/**
 * Documents of the first window. One window is read while the previous one is written, so at most two are in memory. A
 * window grows up to `windowMax` documents, but is limited by the size of the previous documents to about
 * `windowBytes`.
 */
const firstWindow = 16
const windowMax = 128
const windowBytes = 1024 * 1024
/** A document with more leaves than this is opened in windows of its own when all of them are wanted. */
const togetherLeavesMax = 16

interface ItemError { readonly id: unknown; readonly rev: unknown; readonly error: string; readonly reason: string }
interface ErrorPart { readonly error: ItemError; readonly ofRevision?: true }
type ItemPart = { readonly ok: ShownRevision; readonly flags: ReadFlags } | ErrorPart
interface ItemResult {
  readonly id: unknown
  /** Those of a document with many leaves are read while they are sent. */
  readonly parts: readonly ItemPart[] | AsyncIterable<ItemPart>
}

export async function postBulkGet(request: RequestContext, services: Services): Promise<void> {
  for (const name of refusedParameters) {
    if (request.query.has(name)) throw new ApiError('bad_request', `"${name}" query parameter is not acceptable`)
  }
  requireJsonType(request)
  const { docs } = await readJsonObject(request, services)
  if (!Array.isArray(docs)) throw new ApiError('bad_request', "Missing JSON list of 'docs'.")
  const { bulkGetMax } = services.options
  if (docs.length > bulkGetMax) throw tooMany('documents', docs.length, bulkGetMax, httpDeclarations.bulkGetMax.name)
  const multipart = multipartType(request.header('accept'))
  if (multipart === null) await sendResults(docs, request, services)
  else await sendParts(docs, multipart, request, services)
}

/** Returns the multipart type when the Accept header names one and does not allow JSON, otherwise null. */
function multipartType(accept: string | undefined): 'multipart/mixed' | 'multipart/related' | null {
  if (acceptsType(accept, 'application/json')) return null
  if (acceptsType(accept, 'multipart/mixed')) return 'multipart/mixed'
  return acceptsType(accept, 'multipart/related') ? 'multipart/related' : null
}

async function sendResults(docs: readonly unknown[], request: RequestContext, services: Services): Promise<void> {
  const writer = new JsonWriter(request, services, 200, jsonHeaders(request, services))
  writer.text('{"results":[')
  let first = true
  await eachResult(docs, request, services, ({ id, parts }) => {
    const head = `${first ? '' : ','}{"id":${JSON.stringify(id)},"docs":[`
    first = false
    const only = isRead(parts) && parts.length === 1 ? parts[0] : undefined
    if (only !== undefined && 'ok' in only && only.ok.attachments === undefined) {
      writer.text(`${head}{"ok":`)
      writer.document(splicedRevision(only.ok, only.flags))
      writer.text('}]}')
      return writer.flushFull()
    }
    writer.text(head)
    return writeParts(writer, parts, request, services)
  })
  writer.text(']}\n')
  await writer.end()
}

async function writeParts(
  writer: JsonWriter, parts: ItemResult['parts'], request: RequestContext, services: Services,
): Promise<void> {
  let head = '{'
  for await (const part of parts) {
    writer.text(head)
    head = ',{'
    if ('ok' in part) {
      writer.text('"ok":')
      await writeRevision(writer, part.ok, part.flags, request, services)
    } else {
      writer.text(`"error":${JSON.stringify(part.error)}`)
    }
    writer.text('}')
    const full = writer.flushFull()
    if (full !== undefined) await full
  }
  writer.text(']}')
  await writer.flushFull()
}

async function sendParts(
  docs: readonly unknown[], type: 'multipart/mixed' | 'multipart/related', request: RequestContext, services: Services,
): Promise<void> {
  const writer = new MultipartWriter(request, services, type)
  await eachResult(docs, request, services, async ({ parts }) => {
    for await (const part of parts) {
      await ('ok' in part ? documentPart(writer, part.ok, part.flags) : errorPart(writer, part))
    }
  })
  await writer.end()
}

/** Writes an error part. Unlike in JSON, a missing revision of an existing document has no member `id`. */
function errorPart(writer: MultipartWriter, { error: { id, ...rest }, ofRevision }: ErrorPart): Promise<void> {
  return writer.errorPart(ofRevision === true ? rest : { id, ...rest })
}

function documentPart(writer: MultipartWriter, shown: ShownRevision, flags: ReadFlags): Promise<void> {
  const headers = `X-Doc-Id: ${headerText(shown.id)}\r\nX-Rev-Id: ${headerText(shown.revision)}\r\n`
  return writer.revisionPart(shown, flags, headers)
}

/** Removes line breaks, which would end the header. */
function headerText(text: string): string {
  return text.replace(/[\r\n]/g, ' ')
}

async function eachResult(
  docs: readonly unknown[], request: RequestContext, services: Services,
  take: (result: ItemResult) => Promise<void> | undefined,
): Promise<void> {
  const flags = readFlags(request.query)
  let window = firstWindow
  let begin = 0
  const rules = documentIdRules(request.database, services)
  const openWindow = (): Promise<OpenedItems> | undefined => {
    if (begin === docs.length) return undefined
    return openItems(docs.slice(begin, begin + window).map(item => readItem(item, flags, rules)), request, services)
  }
  // Read one window while the previous one is written.
  for (let ahead = openWindow(); ahead !== undefined;) {
    const { results, bytes } = await ahead
    await services.runtime.turns.pause()
    begin += results.length
    window = Math.max(1, Math.min(windowMax, window * 4, Math.floor(results.length * windowBytes / Math.max(1, bytes))))
    ahead = openWindow()
    // Prevent an unhandled rejection: the error is handled when the window is awaited, or ignored if the client leaves
    // first.
    ahead?.catch(() => {})
    for (const result of results) {
      const taken = take(result)
      if (taken !== undefined) await taken
    }
  }
}

/** Results of the first items, in order; at least one. `bytes` is the sum of their bodies. */
interface OpenedItems { readonly results: readonly ItemResult[]; readonly bytes: number }

interface WantedItem { readonly id: string; readonly rev: string | undefined; readonly flags: ReadFlags }

function readItem(item: unknown, flags: ReadFlags, rules: DocumentIdRules): WantedItem | ItemResult {
  if (!isJsonObject(item) || Object.keys(item).length === 0) {
    return refuse(null, null, 'bad_request', 'document must be a JSON object')
  }
  const { id, rev } = item
  if (id === undefined) return refuse(null, null, 'bad_request', 'document id missed')
  try {
    checkDocumentId(id, rules)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    if (typeof id === 'string') checkIdBytes(id)
    return refuse(id, rev ?? null, error.error, error.reason)
  }
  const invalid = invalidMember(item)
  if (invalid !== null) return refuse(id, invalid.value, 'bad_request', invalid.reason)
  const since = item['atts_since'] as readonly string[] | undefined
  const isSince = since !== undefined && since.length > 0
  const itemFlags = isSince ? { ...flags, attachments: true, attachmentsSince: since } : flags
  return { id: id as string, rev: rev as string | undefined, flags: itemFlags }
}

async function openItems(
  wantedItems: readonly (WantedItem | ItemResult)[], request: RequestContext, services: Services,
): Promise<OpenedItems> {
  const r = request.query.quorum('r')
  const lazy = await lazyResults(wantedItems.filter(wantsLeaves), r, request, services)
  const items = wantedItems.map(item => lazy.get(item) ?? item)
  const asked = items.flatMap(item => 'parts' in item ? [] : [item])
  const requests = asked.map(({ id, rev, flags: { latest } }) => ({
    id, revisions: rev === undefined ? 'leaves' as const : [formatRevision(parseRevision(rev))], latest,
  }))
  const answers = await services.coordinator.openManyRevisions(request.database, requests, { r }, request)
  const missing = answers.indexOf(undefined)
  const wanted = missing < 0 ? asked : asked.slice(0, missing)
  const shown = wanted.map((item, index) => showItem(item, answers[index]!))
  const results: ItemResult[] = []
  let next = 0
  let bytes = 0
  for (const item of items) {
    const result = 'parts' in item ? item : shown[next++]
    if (result === undefined) break
    results.push(result)
    if (!isRead(result.parts)) continue
    for (const part of result.parts) if ('ok' in part) bytes += part.ok.body.length + openedRevisionBytes
  }
  return { results, bytes }
}

function isRead(parts: ItemResult['parts']): parts is readonly ItemPart[] {
  return Array.isArray(parts)
}

function wantsLeaves(item: WantedItem | ItemResult): item is WantedItem {
  return !('parts' in item) && item.rev === undefined
}

/**
 * Returns the results of documents with many leaves. One replica of each document tells how many there are, which costs
 * much less than to ask a quorum; if it lacks some, they are opened together.
 */
async function lazyResults(
  items: readonly WantedItem[], r: number | undefined, request: RequestContext, services: Services,
): Promise<ReadonlyMap<WantedItem | ItemResult, ItemResult>> {
  if (items.length === 0) return new Map()
  const ids = items.map(({ id }) => id)
  const documents = await services.coordinator.openDocuments(request.database, ids, { body: false }, request)
  const large = items.filter((_, index) => (documents[index]?.leaves.length ?? 0) > togetherLeavesMax)
  return new Map(large.map(item => [item, { id: item.id, parts: lazyParts(item, r, request, services) }]))
}

async function* lazyParts(
  { id, flags }: WantedItem, r: number | undefined, request: RequestContext, services: Services,
): AsyncGenerator<ItemPart> {
  const wanted = { id, revisions: 'leaves' as const, latest: flags.latest, r }
  for await (const opened of openInWindows(wanted, request, services)) yield part(id, opened, flags)
}

function showItem({ id, rev, flags }: WantedItem, opened: readonly OpenedRevision[] | null): ItemResult {
  if (opened === null || opened.length === 0) return refuse(id, rev ?? 'undefined', 'not_found', 'missing')
  return { id, parts: opened.map(item => part(id, item, flags)) }
}

/** Returns the value that is not valid, and the reason. */
function invalidMember(
  { rev, atts_since: attachmentsSince }: JsonObject,
): { readonly value: unknown; readonly reason: string } | null {
  if (rev !== undefined && (typeof rev !== 'string' || readRevision(rev) === null)) {
    return { value: rev, reason: 'Invalid rev format' }
  }
  if (attachmentsSince === undefined) return null
  if (!Array.isArray(attachmentsSince)) {
    return { value: attachmentsSince, reason: 'att_since value must be array of revs.' }
  }
  const invalid: unknown = attachmentsSince.find(since => typeof since !== 'string' || readRevision(since) === null)
  return invalid === undefined ? null : { value: invalid, reason: 'Invalid rev format' }
}

/** Returns one revision. Flags that concern the whole document, such as conflicts, have no effect. */
function part(id: string, item: OpenedRevision, flags: ReadFlags): ItemPart {
  if (item.kind === 'missing') {
    return { error: { id, rev: item.revision, error: 'not_found', reason: 'missing' }, ofRevision: true }
  }
  return { ok: shownRevision(item.revision), flags }
}

function refuse(id: unknown, rev: unknown, error: string, reason: string): ItemResult {
  return { id, parts: [{ error: { id, rev, error, reason } }] }
}
