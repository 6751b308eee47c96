/**
 * The definitions of Mango's JSON indexes (docs/decisions/0019-mango.md). An index has a row for each document that has
 * all of its fields and that its partial filter selects. The key of the row is the array of the fields' values.
 */
import type { IndexDefinition } from '../contracts/index-replica.ts'
import { isJsonObject, type JsonObject, parseText } from '../json/json-text.ts'

/** The kind of these definitions, and the `language` of the design documents in which they are stored. */
export const queryIndexKind = 'query'

export interface QueryIndex {
  /** The names of the fields, as `parseFieldPath` reads them. An index is read in both directions. */
  readonly fields: readonly string[]
  /** The selector of a partial index, in its normal form. Absent: all documents. */
  readonly partialFilter?: JsonObject
  /** Whether the rows are ordered by partition. */
  readonly partitioned: boolean
}

/** Returns the definition of an index. Equal fields, filters and options give equal definitions. */
export function queryIndexDefinition({ fields, partialFilter, partitioned }: QueryIndex): IndexDefinition {
  const map = { fields, ...(partialFilter !== undefined && { partial_filter_selector: partialFilter }) }
  return {
    kind: queryIndexKind, map: JSON.stringify(map), reduce: '_count',
    options: partitioned ? { partitioned: true } : {},
  }
}

/**
 * Reads a definition that `queryIndexDefinition` has made.
 *
 * @throws ApiError, SyntaxError or TypeError for another one
 */
export function parseQueryIndex({ kind, map, options }: IndexDefinition): QueryIndex {
  const { fields, partial_filter_selector: partialFilter } = parseText(map) as Record<string, unknown>
  if (kind !== queryIndexKind || !Array.isArray(fields) || !fields.every(name => typeof name === 'string')) {
    throw new TypeError('the definition is not that of a JSON index')
  }
  return {
    fields, partitioned: options['partitioned'] === true, ...(isJsonObject(partialFilter) && { partialFilter }),
  }
}
