import { asBuffer } from '../encoding/as-buffer.ts'
import { ApiError } from '../errors.ts'
import { type ParsedDocument, readDocument } from './document-json.ts'
import { CLOSE_BRACKET, COLON, COMMA, eachValue, OPEN_BRACKET, skipSpace, skipValue, textOf } from './json-bytes.ts'
import { isJsonObject, jsonBytes, type JsonObject, readJson } from './json-text.ts'

const docsName = Buffer.from('"docs"')
const asciiEscape = Buffer.from('\\u00')

export interface BulkDocuments {
  readonly documents: readonly ParsedDocument[]
  /** `new_edits`, true when absent. */
  readonly newEdits: boolean
  /** All other members of the request (`w`, `all_or_nothing`, ..). */
  readonly members: JsonObject
}

/**
 * Parses the body of `_bulk_docs` (api.md A5.6).
 *
 * @throws ApiError for the request's shape, and the errors of `parseDocument` for any document
 */
export function parseBulkDocuments(input: Uint8Array | string): BulkDocuments {
  const bytes = jsonBytes(input)
  return readOneByOne(bytes) ?? readAtOnce(bytes)
}

/**
 * Each document parsed by itself, which costs half: one text of all would be written to fresh memory, and all values would live together.
 * null: the documents are not told that easily, or something is wrong: `readAtOnce` says what.
 */
function readOneByOne(bytes: Uint8Array): BulkDocuments | null {
  const array = loneArray(bytes)
  if (array === null) return null
  try {
    const documents: ParsedDocument[] = []
    let at = skipJsonSpace(bytes, array + 1)
    for (let more = bytes[at] !== CLOSE_BRACKET; more;) {
      const { document, end } = readDocument(bytes, at)
      documents.push(document)
      at = skipJsonSpace(bytes, end)
      more = bytes[at] === COMMA
      if (more) at = skipJsonSpace(bytes, at + 1)
    }
    if (bytes[at] !== CLOSE_BRACKET) return null
    const rest: unknown = JSON.parse(textOf(bytes, 0, array + 1) + textOf(bytes, at))
    return isJsonObject(rest) && Array.isArray(rest['docs']) ? bulkDocuments(rest, () => documents) : null
  } catch (error) {
    if (error instanceof ApiError || error instanceof SyntaxError) return null
    throw error
  }
}

function readAtOnce(bytes: Uint8Array): BulkDocuments {
  const { value } = readJson(bytes)
  if (!isJsonObject(value)) throw new ApiError('not_an_object')
  return bulkDocuments(value, docs => {
    // Of members of one name the last one stands, and the values are of that one.
    let array = 0
    eachValue(bytes, skipSpace(bytes, 0), (at, name) => {
      if (name === 'docs') array = at
      return skipValue(bytes, at)
    })
    const documents: ParsedDocument[] = []
    eachValue(bytes, array, at => {
      const { document, end } = readDocument(bytes, at, () => docs[documents.length])
      documents.push(document)
      return end
    })
    return documents
  })
}

function bulkDocuments(request: JsonObject, read: (docs: readonly unknown[]) => ParsedDocument[]): BulkDocuments {
  const { docs, new_edits: newEdits = true, ...members } = request
  if (docs === undefined) throw new ApiError('bad_request', 'POST body must include `docs` parameter.')
  if (!Array.isArray(docs)) throw new ApiError('bad_request', '`docs` parameter must be an array.')
  if (typeof newEdits !== 'boolean') throw new ApiError('bad_request', '`new_edits` parameter must be a boolean.')
  return { documents: read(docs), newEdits, members }
}

/** Where the array of the only member called `docs` starts; null also when that is not told at once: an escape might spell the name. */
function loneArray(bytes: Uint8Array): number | null {
  const text = asBuffer(bytes)
  const first = text.indexOf(docsName)
  if (first < 0 || text.indexOf(docsName, first + docsName.length) >= 0 || text.indexOf(asciiEscape) >= 0) return null
  const colon = skipSpace(bytes, first + docsName.length)
  const array = skipSpace(bytes, colon + 1)
  return bytes[colon] === COLON && bytes[array] === OPEN_BRACKET ? array : null
}

/** Unlike `skipSpace` for bytes that may be no JSON. */
function skipJsonSpace(bytes: Uint8Array, at: number): number {
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at++
  return at
}
