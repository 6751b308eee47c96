import type { IndexSuggestion, PlannedQuery } from './planned-query.ts'
import type { SelectorFields } from './selector-fields.ts'

/**
 * Returns the request for an index that would serve a query: first the fields with one value, then those of the sort,
 * or without a sort one other field of the selector. Returns null when no index would help: the selector matches
 * documents whatever fields they have.
 */
export function suggestIndex(
  { sort, partition, partitioned }: PlannedQuery, { required, indexable, constant }: SelectorFields,
): IndexSuggestion | null {
  const sorted = sort.map(({ name }) => name)
  const others = [...indexable, ...required].filter(name => required.has(name) && !isAlwaysPresent(name))
  const fixed = others.filter(name => constant.has(name) && !sorted.includes(name))
  const last = sorted.length > 0 ? sorted : others.filter(name => !constant.has(name)).slice(0, 1)
  const fields = [...new Set([...fixed, ...last])]
  if (fields.length === 0) return null
  return { index: { fields }, type: 'json', ...(partitioned && partition === null && { partitioned: false }) }
}

/** All documents have these fields, and the selection by id needs no index. */
function isAlwaysPresent(name: string): boolean {
  return name === '_id' || name === '_rev'
}
