/** `_attachments` of a document as a client writes it (api.md A5.14, F2). */
import { ApiError, isJsonObject, type JsonObject, type ParsedDocument } from '@sectional/core'

export const defaultContentType = 'application/octet-stream'

interface NewEntry {
  readonly name: string
  readonly contentType: string
  /** The coding of the bytes that come. */
  readonly encoding: 'identity' | 'gzip'
  /** Where the client says that it was written; counts only for revisions that bring their history. */
  readonly revpos: number
}

export interface InlineEntry extends NewEntry { readonly kind: 'inline'; readonly data: Uint8Array }

/** Its bytes come in a part of their own. */
export interface FollowingEntry extends NewEntry {
  readonly kind: 'follows'
  /** Bytes that come; null: not announced. */
  readonly length: number | null
  /** Base64 MD5 of the bytes that come. */
  readonly digest: string | null
}

/** The content that the replaced revision has under this name. `revpos` as the client wrote it, undefined when it did not. */
export interface StubEntry { readonly kind: 'stub'; readonly name: string; readonly revpos: unknown }

export type AttachmentEntry = InlineEntry | FollowingEntry | StubEntry

/** @throws ApiError `bad_request` that names the attachment */
export function attachmentEntries({ attachments, attachmentNames }: ParsedDocument): readonly AttachmentEntry[] {
  if (attachments === null) return []
  const names = attachmentNames ?? Object.keys(attachments)
  if (new Set(names).size < names.length) throw new ApiError('bad_request', 'Duplicate attachments')
  return names.map(name => readEntry(name, attachments[name]))
}

/** @throws ApiError */
export function checkAttachmentName(name: string): void {
  if (name.startsWith('_')) throw new ApiError('bad_request', `Attachment name '${name}' starts with prohibited character '_'`)
  if (!name.isWellFormed()) throw new ApiError('bad_request', 'Attachment name is not UTF-8 encoded')
}

function readEntry(name: string, value: unknown): AttachmentEntry {
  checkAttachmentName(name)
  if (!isJsonObject(value)) throw invalidData(name)
  const { revpos } = value
  if (value['stub'] === true) return { kind: 'stub', name, revpos }
  const { content_type: type } = value
  const entry: NewEntry = {
    name, contentType: typeof type === 'string' && type !== '' ? type : defaultContentType,
    encoding: value['encoding'] === 'gzip' ? 'gzip' : 'identity', revpos: count(revpos) ?? 0,
  }
  return value['follows'] === true ? following(entry, value) : { kind: 'inline', ...entry, data: decodeBase64(name, value['data']) }
}

function following(entry: NewEntry, value: JsonObject): FollowingEntry {
  const digest = value['digest']
  return {
    kind: 'follows', ...entry,
    length: count(value[entry.encoding === 'gzip' ? 'encoded_length' : 'length']),
    digest: typeof digest === 'string' && digest.startsWith('md5-') ? digest.slice('md5-'.length) : null,
  }
}

function count(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null
}

const base64 = /^[A-Za-z0-9+/]*={0,2}$/

/** Line breaks are fine, missing padding is not. */
function decodeBase64(name: string, data: unknown): Uint8Array {
  if (typeof data !== 'string') throw invalidData(name)
  const text = /\s/.test(data) ? data.replace(/\s+/g, '') : data
  if (text.length % 4 !== 0 || !base64.test(text)) throw invalidData(name)
  return Buffer.from(text, 'base64')
}

function invalidData(name: string): ApiError {
  return new ApiError('bad_request', `Invalid attachment data for ${name}`)
}
