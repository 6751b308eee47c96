/** Whether an index can serve a query. */
import type { JsonIndex, PlannedQuery, RejectionReason, UseIndex } from './planned-query.ts'
import type { SelectorFields } from './selector-fields.ts'

export type UnusableReason = Extract<
  RejectionReason, 'is_partial' | 'scope_mismatch' | 'field_mismatch' | 'sort_order_mismatch'
>

/** Returns why the index cannot serve the query, or null when it can. */
export function analyseIndex(query: PlannedQuery, fields: SelectorFields, index: JsonIndex): UnusableReason | null {
  if (index.partialFilter !== undefined && !isNamed(query.useIndex, index)) return 'is_partial'
  if (index.partitioned !== (query.partition !== null)) return 'scope_mismatch'
  if (!hasAllMatches(query, fields, index)) return 'field_mismatch'
  return servesSort(query, fields, index) ? null : 'sort_order_mismatch'
}

/** Whether a query names the index. */
export function isNamed(useIndex: UseIndex | null, { ddoc, name }: JsonIndex): boolean {
  return useIndex !== null && useIndex.ddoc === ddoc && (useIndex.name ?? name) === name
}

/**
 * Whether each document of the result has a row, with the fields that the query sees. Documents without a field of the
 * sort are not in the result. Rows always have the `_conflicts` of a document.
 */
export function hasAllMatches(
  { sort, conflicts }: PlannedQuery, { required }: SelectorFields, { fields }: JsonIndex,
): boolean {
  return fields.every(({ name }) =>
    (required.has(name) || name === '_id' || name === '_rev' || sort.some(sorted => sorted.name === name))
    // Bodies have no members whose names begin with `_`.
    && (conflicts || !name.startsWith('_conflicts')))
}

/**
 * Whether the fields of the sort are the first columns, or follow first columns that have one value in all matching
 * documents. Rows of other indexes may be in that order, too, but CouchDB does not use them either.
 */
function servesSort({ sort }: PlannedQuery, { constant }: SelectorFields, { fields }: JsonIndex): boolean {
  const variable = fields.findIndex(({ name }) => !constant.has(name))
  const startMax = variable === -1 ? fields.length : variable
  return fields.slice(0, startMax + 1).some((_, start) =>
    sort.every(({ name }, at) => fields[start + at]?.name === name))
}
