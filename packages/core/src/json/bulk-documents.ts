import { ApiError } from '../errors.ts'
import { type ParsedDocument, readDocument } from './document-json.ts'
import { eachValue, skipSpace, skipValue } from './json-bytes.ts'
import { isJsonObject, type JsonObject, readJson } from './json-text.ts'

const docsName = Buffer.from('"docs"')
const asciiEscape = Buffer.from('\\u00')

export interface BulkDocuments {
  readonly documents: readonly ParsedDocument[]
  /** `new_edits`, true when absent. */
  readonly newEdits: boolean
  /** All other members of the request (`w`, `all_or_nothing`, ..). The values of the documents are not kept while they are written. */
  readonly members: JsonObject
}

/**
 * Parses the body of `_bulk_docs` (api.md A5.6): JSON.parse once over all, then each document from its own bytes.
 *
 * @throws ApiError for the request's shape, and the errors of `parseDocument` for any document
 */
export function parseBulkDocuments(input: Uint8Array | string): BulkDocuments {
  const { bytes, value } = readJson(input)
  if (!isJsonObject(value)) throw new ApiError('not_an_object')
  const { docs, new_edits: newEdits = true, ...members } = value
  if (docs === undefined) throw new ApiError('bad_request', 'POST body must include `docs` parameter.')
  if (!Array.isArray(docs)) throw new ApiError('bad_request', '`docs` parameter must be an array.')
  if (typeof newEdits !== 'boolean') throw new ApiError('bad_request', '`new_edits` parameter must be a boolean.')
  return { documents: readDocuments(bytes, docs), newEdits, members }
}

function readDocuments(bytes: Uint8Array, values: readonly unknown[]): ParsedDocument[] {
  const documents: ParsedDocument[] = []
  const read = (docs: number): number => eachValue(bytes, docs, at => {
    const { document, end } = readDocument(bytes, at, values[documents.length])
    documents.push(document)
    return end
  })
  // Of members of one name the last one stands, and the values are of that one: only a lone one is read on the way.
  const lone = namesDocsOnce(bytes)
  let docs = 0
  eachValue(bytes, skipSpace(bytes, 0), (at, name) => {
    if (name !== 'docs') return skipValue(bytes, at)
    docs = at
    return lone ? read(at) : skipValue(bytes, at)
  })
  if (!lone) read(docs)
  return documents
}

/** False also when it is not told at once: an escape might spell the name. */
function namesDocsOnce(bytes: Uint8Array): boolean {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  const first = text.indexOf(docsName)
  return first >= 0 && text.indexOf(docsName, first + docsName.length) < 0 && text.indexOf(asciiEscape) < 0
}
