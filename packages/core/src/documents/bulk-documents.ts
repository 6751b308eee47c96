import { ApiError } from '../errors.ts'
import { type DocumentPlace, type ParsedDocument, readLargeDocument, readSmallDocument } from './document-json.ts'
import {
  closeBracketByte, colonByte, commaByte, openBraceByte, openBracketByte, quoteByte, skipString, skipValue, textOf,
} from '../json/json-bytes.ts'
import { checkJson } from '../json/json-check.ts'
import { skipJsonSpace } from '../json/json-grammar.ts'
import { isJsonObject, jsonBytes, type JsonObject, parseText } from '../json/json-text.ts'

export interface BulkDocuments {
  readonly documents: readonly ParsedDocument[]
  /** `new_edits`, true when absent. */
  readonly newEdits: boolean
  /** All other members of the request, such as `w` and `all_or_nothing`. */
  readonly members: JsonObject
}

export interface BulkLimits {
  /** Most documents of one request. */
  readonly documentsMax: number
  /** The setting that determines `documentsMax`, for the error text. */
  readonly setting: string
}

const unlimited: BulkLimits = { documentsMax: Number.POSITIVE_INFINITY, setting: '' }
/** Most bytes of the request besides its documents. These bytes are parsed in one piece. */
const restBytesMax = 1024 * 1024

/**
 * Parses the body of `_bulk_docs` without yielding.
 *
 * @throws ApiError as `readBulkDocuments` does
 */
export function parseBulkDocuments(input: Uint8Array | string): BulkDocuments {
  const reading = readBulkDocuments(input)
  for (let step = reading.next(); ; step = reading.next()) if (step.done === true) return step.value
}

/**
 * Parses the body of `_bulk_docs` and yields after each document. Each document is parsed separately. This takes half
 * the time of one parse of the whole body, which would copy the whole text to new memory and keep all values at once.
 *
 * @throws ApiError `too_large` for more documents than `documentsMax`, `bad_request` for the request's shape, and the
 *   errors of `parseDocument` and `parseDocumentInSlices` for any document
 */
export function* readBulkDocuments(
  input: Uint8Array | string, limits: BulkLimits = unlimited,
): Generator<void, BulkDocuments> {
  const reader = new BulkReader(jsonBytes(input), limits)
  yield* reader.read()
  return reader.result()
}

class BulkReader {
  readonly #bytes: Uint8Array
  readonly #limits: BulkLimits
  /** The request's text without its documents (the elements of `docs`). It ends before byte `#restFrom`. */
  #rest = ''
  #restFrom = 0
  #documents: readonly ParsedDocument[] = []
  /** The error of the first document that is refused. It is thrown at the end, since invalid JSON takes precedence. */
  #refusal: ApiError | undefined

  constructor(bytes: Uint8Array, limits: BulkLimits) {
    this.#bytes = bytes
    this.#limits = limits
  }

  /** Reads the members of the request. Invalid JSON stays in `#rest`, so that the parse of `#rest` refuses it. */
  * read(): Generator<void, void> {
    const bytes = this.#bytes
    let at = skipJsonSpace(bytes, 0)
    if (bytes[at] !== openBraceByte) return yield* this.#noObject(at)
    do {
      at = skipJsonSpace(bytes, at + 1)
      if (bytes[at] !== quoteByte) break
      const name = at
      at = skipString(bytes, at)
      const isDocs = isDocsName(bytes, name, at)
      at = skipJsonSpace(bytes, at)
      if (bytes[at] !== colonByte) break
      at = skipJsonSpace(bytes, at + 1)
      // Of several members with this name only the last one counts.
      if (isDocs) this.#refusal = undefined
      if (isDocs && bytes[at] === openBracketByte) at = yield* this.#list(at)
      else at = yield* this.#other(at)
      at = skipJsonSpace(bytes, at)
    } while (bytes[at] === commaByte)
    this.#keep(bytes.length)
  }

  /** Handles a request that is not an object. It is always refused; its remaining text determines the error. */
  * #noObject(at: number): Generator<void, void> {
    if (this.#bytes[at] !== openBracketByte) return this.#keep(this.#bytes.length)
    const { end } = yield* checkJson(this.#bytes, at)
    this.#rest = '[]'
    this.#restFrom = end
    this.#keep(this.#bytes.length)
  }

  /** Skips the value of another member. An object or array is checked in slices before it is parsed. */
  * #other(at: number): Generator<void, number> {
    const isNested = this.#bytes[at] === openBraceByte || this.#bytes[at] === openBracketByte
    return isNested ? (yield* checkJson(this.#bytes, at)).end : skipValue(this.#bytes, at)
  }

  /** Reads the documents of the array that begins at `start`; returns the position after it. */
  * #list(start: number): Generator<void, number> {
    const bytes = this.#bytes
    const documents: ParsedDocument[] = []
    this.#keep(start + 1)
    let at = skipJsonSpace(bytes, start + 1)
    let count = 0
    for (let more = bytes[at] !== closeBracketByte; more;) {
      if (++count > this.#limits.documentsMax) throw tooManyDocuments(this.#limits)
      const { document, end } = yield* this.#document(at)
      if (document !== undefined) documents.push(document)
      at = skipJsonSpace(bytes, end)
      more = bytes[at] === commaByte
      if (more) at = skipJsonSpace(bytes, at + 1)
      yield
    }
    if (bytes[at] !== closeBracketByte) throw new ApiError('invalid_json')
    this.#documents = documents
    this.#restFrom = at
    return at + 1
  }

  * #document(start: number): Generator<void, DocumentPlace | { readonly document: undefined; readonly end: number }> {
    const bytes = this.#bytes
    try {
      return readSmallDocument(bytes, start) ?? (yield* readLargeDocument(bytes, start))
    } catch (error) {
      if (error instanceof SyntaxError) throw new ApiError('invalid_json', undefined, { cause: error })
      if (!(error instanceof ApiError) || error.reason === invalidJson) throw error
      this.#refusal ??= error
    }
    const end = yield* this.#other(start)
    return { document: undefined, end }
  }

  /** Adds the text up to `end` to `#rest`. */
  #keep(end: number): void {
    if (this.#rest.length + end - this.#restFrom > restBytesMax) {
      throw new ApiError(
        'too_large', `the request entity is too large: members besides \`docs\` have more than ${restBytesMax} bytes`,
      )
    }
    this.#rest += textOf(this.#bytes, this.#restFrom, end)
    this.#restFrom = end
  }

  result(): BulkDocuments {
    const request = parsedRest(this.#rest)
    if (!isJsonObject(request)) throw new ApiError('not_an_object')
    const { docs, new_edits: newEdits = true, ...members } = request
    if (docs === undefined) throw new ApiError('bad_request', 'POST body must include `docs` parameter.')
    if (!Array.isArray(docs)) throw new ApiError('bad_request', '`docs` parameter must be an array.')
    if (typeof newEdits !== 'boolean') throw new ApiError('bad_request', '`new_edits` parameter must be a boolean.')
    if (this.#refusal !== undefined) throw this.#refusal
    return { documents: this.#documents, newEdits, members }
  }
}

const invalidJson = new ApiError('invalid_json').reason

function parsedRest(text: string): unknown {
  try {
    return parseText(text)
  } catch (error) {
    throw error instanceof ApiError ? error : new ApiError('invalid_json', undefined, { cause: error })
  }
}

function tooManyDocuments({ documentsMax, setting }: BulkLimits): ApiError {
  const count = `more than ${documentsMax} documents, which is ${setting}`
  return new ApiError('too_large', `the request entity is too large: ${count}; send them in several requests`)
}

/** Whether the member's name, which may contain escapes, is `docs`. */
function isDocsName(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start > '"\\u0064\\u006f\\u0063\\u0073"'.length) return false
  const text = textOf(bytes, start, end)
  return text === '"docs"' || (text.includes('\\') && parsedRest(text) === 'docs')
}
