import type { JsonIndex, PlannedQuery } from './planned-query.ts'
import type { SelectorFields } from './selector-fields.ts'

/**
 * Whether the rows of an index have all fields of the selector and of the answer, so that no document must be read.
 * A row has the values of its columns and the document's id.
 */
export function coversQuery({ fields, conflicts }: PlannedQuery, { all }: SelectorFields, index: JsonIndex): boolean {
  if (fields === null || conflicts) return false
  const present = new Set(['_id', ...index.fields.map(({ name }) => name)])
  // The selector may have many more fields than the index.
  return all.size <= present.size && [...fields, ...all].every(name => present.has(name))
}
