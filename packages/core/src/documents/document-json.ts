/**
 * Parses the JSON of a document into its body and its special members, whose names start with an underscore
 * (docs/reference/documents.md#special-members).
 *
 * The body is kept as bytes and is not parsed again when it is sent to a client, so it must contain exactly what the
 * client wrote. It is therefore the client's own text in canonical form (`canonical-json.ts`), without the special
 * members. JSON.parse validates the text and provides the values of the special members.
 *
 * Lone surrogates (`"\ud800"`), which UTF-8 cannot represent, are refused.
 */
import type { RevisionPath } from '../contracts/shard-replica.ts'
import { ApiError } from '../errors.ts'
import { formatRevision, normalizeRevisionHash, parseRevision } from '../revisions/revision-id.ts'
import {
  canonicalObject, canonicalObjectInSlices, cutMembers, scanCanonical, type ScannedMember, type ScannedObject,
  scanShortCanonical,
} from '../json/canonical-json.ts'
import {
  eachValue, openBraceByte, openBracketByte, skipSpace, skipString, skipValue, textOf,
} from '../json/json-bytes.ts'
import { checkJson, checkStructure } from '../json/json-check.ts'
import { skipJsonSpace } from '../json/json-grammar.ts'
import { isJsonObject, jsonBytes, type JsonObject, parseText, readJson } from '../json/json-text.ts'
import { blankRepeatedMembers } from '../json/repeated-members.ts'

export interface ParsedDocument {
  /** `_id`, a string that was not checked yet (`checkDocumentId`); null when absent. */
  readonly id: string | null
  /** The revision that the document names, in normal form: the newest of `_revisions`, otherwise `_rev`. */
  readonly revision: string | null
  /** That revision with its ancestors; a path of one revision when only `_rev` was given. */
  readonly path: RevisionPath | null
  readonly deleted: boolean
  /** `_attachments`; null when it is absent or empty. */
  readonly attachments: JsonObject | null
  /**
   * The names in `_attachments` in the order of the text, repeated names included. `attachments` does not have this
   * order, because JavaScript objects move names like integers to the front.
   */
  readonly attachmentNames?: readonly string[]
  /** Canonical JSON object in stored member order, UTF-8. */
  readonly body: Buffer
}

/** Special members that the server computes. They are ignored when a client sends them back. */
const ignoredMembers: ReadonlySet<string> = new Set(['_revs_info', '_local_seq', '_conflicts', '_deleted_conflicts'])
/** Special members that are stored in the body, like members without an underscore. */
const keptMembers: ReadonlySet<string> = new Set([
  '_access', '_replication_id', '_replication_state', '_replication_state_time', '_replication_state_reason',
  '_replication_stats',
])

/**
 * Parses the JSON of one document.
 *
 * @throws ApiError `invalid_json`, `bad_request` (not an object, too deep), `illegal_docid` (`_id` no string),
 *   `invalid_rev_format`, `doc_validation`
 */
export function parseDocument(input: Uint8Array | string): ParsedDocument {
  const { bytes, value } = readJson(input)
  return readDocument(bytes, skipSpace(bytes, 0), () => value).document
}

function readDocument(bytes: Uint8Array, start: number, valueOf: (end: number) => unknown): DocumentPlace {
  const found = bytes[start] === openBraceByte ? scanCanonical(bytes, start) : null
  const end = found?.end ?? skipValue(bytes, start)
  return documentOf(bytes, start, end, valueOf(end), found)
}

/** A document that was read from the bytes of a request, and the position after it. */
export interface DocumentPlace { readonly document: ParsedDocument; readonly end: number }

/**
 * Reads the document whose JSON starts at byte `start`. Returns null when it has `smallJsonBytes` or more. The bytes
 * need not be valid JSON.
 *
 * @throws ApiError as `parseDocument` does; SyntaxError when the document is not valid JSON
 */
export function readSmallDocument(bytes: Uint8Array, start: number): DocumentPlace | null {
  const found = bytes[start] === openBraceByte ? scanShortCanonical(bytes, start, start + smallJsonBytes) : null
  if (found === undefined) return null
  const end = found?.end ?? start + skipValue(bytes.subarray(start, start + smallJsonBytes), 0)
  if (end - start >= smallJsonBytes) return null
  return documentOf(bytes, start, end, parseText(textOf(bytes, start, end)), found)
}

function documentOf(
  bytes: Uint8Array, start: number, end: number, value: unknown, found: ScannedObject | null,
): DocumentPlace {
  if (!isJsonObject(value)) throw notAnObject()
  const scanned = canonicalObject(bytes, start, end, value, found)
  const special = new SpecialMembers()
  const body = cutMembers(scanned, scanned.special.filter(({ name }) => special.take(name, value[name])))
  const document = special.document(body)
  return { document: document.attachments === null
    ? document
    : { ...document, attachmentNames: attachmentNames(bytes, start) }, end }
}

/** JSON of more bytes is read in slices. */
export const smallJsonBytes = 64 * 1024
/** The limit of values in one special member of a large document, such as ids of revisions or heads of attachments. */
const specialValues = { valuesMax: 500_000, setting: 'the most for a member that starts with an underscore' }

/**
 * Like `parseDocument`, but reads large JSON in slices of some milliseconds.
 *
 * @throws ApiError as `parseDocument` does; `too_large` when a special member holds too many values
 */
export function* parseDocumentInSlices(input: Uint8Array): Generator<void, ParsedDocument> {
  if (input.length <= smallJsonBytes) return parseDocument(input)
  const bytes = jsonBytes(input)
  const start = skipJsonSpace(bytes, 0)
  const { document, end } = yield* readLargeDocument(bytes, start)
  if (skipJsonSpace(bytes, end) < bytes.length) throw new ApiError('invalid_json')
  return document
}

/**
 * Like `readDocument`, in slices. Only the special members become JavaScript values.
 *
 * @throws ApiError as `parseDocumentInSlices` does
 */
export function* readLargeDocument(bytes: Uint8Array, start: number): Generator<void, DocumentPlace> {
  if (bytes[start] !== openBraceByte) {
    const end = skipValue(bytes, start)
    const isList = bytes[start] === openBracketByte && (yield* checkJson(bytes, start)).end > start
    if (!isList) parsed(textOf(bytes, start, end))
    throw notAnObject()
  }
  const { end, repeated } = yield* checkJson(bytes, start)
  const blanked = repeated ? yield* blankRepeatedMembers(bytes, start, end) : null
  const scanned = yield* (blanked === null
    ? canonicalObjectInSlices(bytes, start, end)
    : canonicalObjectInSlices(blanked.bytes, 0, blanked.bytes.length))
  const special = new SpecialMembers()
  const taken: ScannedMember[] = []
  let names: readonly string[] | undefined
  for (const member of scanned.special) {
    yield* checkStructure(scanned.bytes, specialValues, member.start, member.end)
    const valueStart = valueOf(scanned.bytes, member.start)
    const value = parsed(textOf(scanned.bytes, valueStart, member.end))
    if (special.take(member.name, value)) taken.push(member)
    if (member.name === '_attachments') names = memberNames(scanned.bytes, valueStart)
    yield
  }
  const document = special.document(cutMembers(scanned, taken))
  if (blanked !== null && document.attachments !== null) {
    names = yield* writtenNames(bytes, valueOf(bytes, blanked.startOf('"_attachments"')!))
  }
  return { document: document.attachments === null ? document : { ...document, attachmentNames: names ?? [] }, end }
}

/** Returns the names of an object's members, repeated names included. */
function* writtenNames(bytes: Uint8Array, object: number): Generator<void, readonly string[]> {
  yield* checkStructure(bytes, specialValues, object, skipValue(bytes, object))
  return memberNames(bytes, object)
}

/** Returns the position of the value of the member that begins at `start`. */
function valueOf(bytes: Uint8Array, start: number): number {
  return skipSpace(bytes, skipSpace(bytes, skipString(bytes, start)) + 1)
}

function parsed(text: string): unknown {
  try {
    return parseText(text)
  } catch (error) {
    throw error instanceof ApiError ? error : new ApiError('invalid_json', undefined, { cause: error })
  }
}

function notAnObject(): ApiError {
  return new ApiError('bad_request', 'Document must be a JSON object')
}

/** Reads the names from the client's text, because the canonical form does not contain repeated members. */
function attachmentNames(bytes: Uint8Array, start: number): string[] {
  let attachments = start
  eachValue(bytes, start, (at, name) => {
    if (name === '_attachments') attachments = at
    return skipValue(bytes, at)
  })
  return memberNames(bytes, attachments)
}

function memberNames(bytes: Uint8Array, object: number): string[] {
  const names: string[] = []
  eachValue(bytes, object, (at, name) => {
    names.push(name)
    return skipValue(bytes, at)
  })
  return names
}

/** Collects and checks the members whose names start with an underscore. */
class SpecialMembers {
  #id: string | null = null
  #named: RevisionPath | null = null
  #revisions: RevisionPath | null = null
  #deleted = false
  #attachments: JsonObject | null = null

  /** Returns false when the member belongs to the body. */
  take(name: string, value: unknown): boolean {
    if (keptMembers.has(name)) return false
    switch (name) {
      case '_id':
        if (typeof value !== 'string') throw new ApiError('illegal_docid', 'Document id must be a string')
        this.#id = value
        break
      case '_rev':
        this.#named = namedRevision(value)
        break
      case '_revisions':
        this.#revisions = revisionHistory(value)
        break
      case '_deleted':
        if (typeof value !== 'boolean') throw badMember(name)
        this.#deleted = value
        break
      case '_attachments':
        if (!isJsonObject(value)) throw badMember(name)
        this.#attachments = Object.keys(value).length === 0 ? null : value
        break
      default:
        if (!ignoredMembers.has(name)) throw badMember(name)
    }
    return true
  }

  document(body: Buffer): ParsedDocument {
    const path = this.#revisions ?? this.#named
    return {
      id: this.#id,
      revision: path === null ? null : formatRevision({ generation: path.start, hash: path.ids[0]! }),
      path,
      deleted: this.#deleted,
      attachments: this.#attachments,
      body,
    }
  }
}

function badMember(name: string): ApiError {
  return new ApiError('doc_validation', `Bad special document member: ${name}`)
}

function namedRevision(value: unknown): RevisionPath {
  const revision = parseRevision(value)
  return { start: revision.generation, ids: [revision.hash] }
}

/** Reads `_revisions`, which is `{start, ids}`; returns null when it has no ids. */
function revisionHistory(value: unknown): RevisionPath | null {
  if (!isJsonObject(value)) throw badMember('_revisions')
  const { start, ids } = value
  if (typeof start !== 'number' || !Number.isSafeInteger(start)) {
    throw new ApiError('doc_validation', "_revisions.start isn't an integer.")
  }
  if (!Array.isArray(ids)) throw new ApiError('doc_validation', "_revisions.ids isn't a array.")
  if (ids.length > start + 1) {
    throw new ApiError(
      'doc_validation',
      `_revisions.ids has ${ids.length} entries, more than generations up to _revisions.start ${start}`,
    )
  }
  const hashes = ids.map((id: unknown) => {
    if (typeof id !== 'string') throw new ApiError('doc_validation', "RevId isn't a string")
    const hash = normalizeRevisionHash(id)
    if (hash === null) throw new ApiError('invalid_rev_format')
    return hash
  })
  return hashes.length === 0 ? null : { start, ids: hashes }
}
