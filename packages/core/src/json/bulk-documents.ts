import { ApiError } from '../errors.ts'
import { type ParsedDocument, readDocument, readDocumentValue } from './document-json.ts'
import { elementSlices, memberSlice, needsExactText } from './exact-text.ts'
import { isJsonObject, type JsonObject, readJson } from './json-text.ts'

export interface BulkDocuments {
  readonly documents: readonly ParsedDocument[]
  /** `new_edits`, true when absent. */
  readonly newEdits: boolean
  /** All members of the request (`w`, `all_or_nothing`, ..). */
  readonly members: JsonObject
}

/**
 * Parses the body of `_bulk_docs` (api.md A5.6): once, whatever the documents hold. A document that needs exact
 * text is read from its own slice; the others come from the parsed value.
 *
 * @throws ApiError for the request's shape, and the errors of `parseDocument` for any document
 */
export function parseBulkDocuments(input: Uint8Array | string): BulkDocuments {
  const { text, value } = readJson(input)
  if (!isJsonObject(value)) throw new ApiError('not_an_object')
  const { docs, new_edits: newEdits = true } = value
  if (docs === undefined) throw new ApiError('bad_request', 'POST body must include `docs` parameter.')
  if (!Array.isArray(docs)) throw new ApiError('bad_request', '`docs` parameter must be an array.')
  if (typeof newEdits !== 'boolean') throw new ApiError('bad_request', '`new_edits` parameter must be a boolean.')
  const documents = needsExactText(text) ? readMixedDocuments(text, docs) : docs.map(readDocumentValue)
  return { documents, newEdits, members: value }
}

function readMixedDocuments(text: string, values: readonly unknown[]): ParsedDocument[] {
  const slices = elementSlices(memberSlice(text, 'docs')!)
  return values.map((value, i) => readDocument({ text: slices[i]!, value }, needsExactText(slices[i]!)))
}
