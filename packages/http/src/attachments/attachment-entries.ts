/** Reads `_attachments` of a document that a client sent (docs/reference/attachments.md#attachments-in-a-document). */
import { ApiError, isJsonObject, type JsonObject, type ParsedDocument } from '@sectional/core'

export const defaultContentType = 'application/octet-stream'

interface NewEntry {
  readonly name: string
  readonly contentType: string
  /** Content coding in which the client sends the bytes. */
  readonly encoding: 'identity' | 'gzip'
  /**
   * Generation of the revision that added the attachment, as the client gave it. It is used only for revisions that are
   * written with their history (`new_edits=false`).
   */
  readonly revpos: number
}

export interface InlineEntry extends NewEntry { readonly kind: 'inline'; readonly data: Uint8Array }
/** An inline attachment before its Base64 text is decoded. */
interface WrittenEntry extends NewEntry { readonly kind: 'inline'; readonly data: unknown }

/** An attachment whose bytes follow in a separate part of a multipart body. */
export interface FollowingEntry extends NewEntry {
  readonly kind: 'follows'
  /** Bytes of the part, as the client announced them; null when it announced no length. */
  readonly length: number | null
  /** Base64 MD5 that the bytes of the part must have; null when the client gave none. */
  readonly digest: string | null
}

/**
 * A reference to the content that the replaced revision has under this name. `revpos` is the value that the client
 * gave, or undefined.
 */
export interface StubEntry { readonly kind: 'stub'; readonly name: string; readonly revpos: unknown }

export type AttachmentEntry = InlineEntry | FollowingEntry | StubEntry

/**
 * Reads all attachments of a document. Inline content is decoded in slices.
 * @throws ApiError `bad_request` that names the attachment
 */
export function* attachmentEntries(document: ParsedDocument): Generator<void, readonly AttachmentEntry[]> {
  const entries: AttachmentEntry[] = []
  for (const [name, value] of namedValues(document)) {
    const entry = readEntry(name, value)
    entries.push(entry.kind === 'inline' ? { ...entry, data: yield* decodeBase64(name, entry.data) } : entry)
    yield
  }
  return entries
}

/**
 * Returns the attachments whose bytes follow in separate parts of a multipart body.
 * @throws ApiError `bad_request` that names the attachment
 */
export function followingEntries(document: ParsedDocument): readonly FollowingEntry[] {
  return namedValues(document).map(([name, value]) => readEntry(name, value)).filter(entry => entry.kind === 'follows')
}

function namedValues({ attachments, attachmentNames }: ParsedDocument): readonly (readonly [string, unknown])[] {
  if (attachments === null) return []
  const names = attachmentNames ?? Object.keys(attachments)
  if (new Set(names).size < names.length) throw new ApiError('bad_request', 'Duplicate attachments')
  return names.map(name => [name, attachments[name]])
}

/** @throws ApiError `bad_request` for a name that no attachment may have */
export function checkAttachmentName(name: string): void {
  if (name.startsWith('_')) {
    throw new ApiError('bad_request', `Attachment name '${name}' starts with prohibited character '_'`)
  }
  if (!name.isWellFormed()) throw new ApiError('bad_request', 'Attachment name is not UTF-8 encoded')
}

function readEntry(name: string, value: unknown): WrittenEntry | FollowingEntry | StubEntry {
  checkAttachmentName(name)
  if (!isJsonObject(value)) throw invalidData(name)
  const { revpos } = value
  if (value['stub'] === true) return { kind: 'stub', name, revpos }
  const { content_type: type } = value
  const entry: NewEntry = {
    name, contentType: typeof type === 'string' && type !== '' ? type : defaultContentType,
    encoding: value['encoding'] === 'gzip' ? 'gzip' : 'identity', revpos: count(revpos) ?? 0,
  }
  return value['follows'] === true ? following(entry, value) : { kind: 'inline', ...entry, data: value['data'] }
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
/** Base64 characters that are decoded between two yields. */
const sliceCharacters = 256 * 1024

/** Decodes Base64 text. Line breaks in it are accepted; missing padding is an error. */
function* decodeBase64(name: string, data: unknown): Generator<void, Uint8Array> {
  if (typeof data !== 'string') throw invalidData(name)
  const bytes = Buffer.allocUnsafe(Math.ceil(data.length / 4) * 3)
  let length = 0
  /** The first characters of a group of four that continues in the next slice. */
  let begun = ''
  let isPadded = false
  for (let at = 0; at < data.length; at += sliceCharacters) {
    const slice = data.slice(at, at + sliceCharacters)
    const text = begun + (/\s/.test(slice) ? slice.replace(/\s+/g, '') : slice)
    const groups = text.slice(0, text.length - text.length % 4)
    if (!base64.test(groups) || (isPadded && text !== '')) throw invalidData(name)
    isPadded ||= groups.endsWith('=')
    begun = text.slice(groups.length)
    length += bytes.write(groups, length, 'base64')
    yield
  }
  if (begun !== '') throw invalidData(name)
  return bytes.subarray(0, length)
}

function invalidData(name: string): ApiError {
  return new ApiError('bad_request', `Invalid attachment data for ${name}`)
}
