/**
 * Which second index filters the rows of the chosen one before documents are read. A document that matches has a row
 * with one known key in it, which is looked for in the time of about a sixth of a read of the document.
 */
import type { SortKeyEncoder } from '../collation/sort-key.ts'
import { hasAllMatches } from './index-usability.ts'
import { onlyKey } from './index-ranges.ts'
import { fieldIntervals, isFixed } from './key-intervals.ts'
import type { JsonIndex, PlannedQuery } from './planned-query.ts'
import { selectorFields } from './selector-fields.ts'

/** The most indexes that are considered. */
const filtersMax = 8

/**
 * Returns the indexes that may filter the rows of the chosen index: those in which all matches have rows with the same
 * key, of at least one field that does not limit the ranges of the chosen index. There are none for a query that names
 * its index, or that reads one partition.
 *
 * @param encoder of root collation
 */
export function filterIndexes<Index extends JsonIndex>(
  query: PlannedQuery, chosen: Index, indexes: readonly Index[], encoder: SortKeyEncoder,
): readonly Index[] {
  const { selector, useIndex, partition } = query
  if (useIndex !== null || partition !== null || indexes.length < 2) return []
  const fields = selectorFields(selector)
  const names = chosen.fields.map(({ name }) => name)
  const firstOpen = fieldIntervals(selector, names, encoder).findIndex(intervals => !isFixed(intervals))
  const limiting = new Set(firstOpen === -1 ? names : names.slice(0, firstOpen + 1))
  return indexes.filter(index => index !== chosen && !index.partitioned && index.partialFilter === undefined
    && index.fields.some(({ name }) => fields.constant.has(name) && !limiting.has(name))
    && hasAllMatches(query, fields, index)
    && onlyKey({ selector, fields: index.fields, partition: null }, encoder) !== null).slice(0, filtersMax)
}

/** What is known of an index before it is read. */
export interface IndexEstimate {
  /** Number of rows that the query selects. */
  readonly rows: number
  /** Number of all rows of the index. */
  readonly all: number
}

/**
 * Why an index filters the rows of the chosen one, or does not:
 * - `used`: it does;
 * - `few_documents`: it would save fewer documents than its own opening is worth;
 * - `many_rows`: it has too many rows for those that would be looked for;
 * - `not_selective`: it would leave most of the rows in;
 * - `more_rows`: another index filters them better;
 * - `unknown`: its rows were not counted, for instance because it was not built yet.
 */
export type FilterVerdict = 'used' | 'few_documents' | 'many_rows' | 'not_selective' | 'more_rows' | 'unknown'

export interface FilteredRead {
  /** Estimated number of documents that are read with the chosen index alone. */
  readonly documentsAlone: number
  /** The same with the second index. */
  readonly documents: number
}

export interface FilterRating extends Partial<FilteredRead> { readonly verdict: FilterVerdict }

/** Above this part of the documents, a condition leaves too many rows in. */
const selectivePart = 1 / 2
/** A second index may have at most this many rows for each row of the first one that is examined. */
const rowsPerLookupMax = 4

export interface RatedRead {
  /** Number of matches that the answer needs; null: all. */
  readonly needed: number | null
  /** The least number of documents that must be saved. */
  readonly savedMin: number
}

/**
 * Rates the indexes that may filter the rows of the chosen one. The conditions are regarded as independent of each
 * other. At most one is `used`.
 *
 * @param chosen undefined: its rows were not counted
 * @param filters in the order of the result; undefined: the rows of this one were not counted
 */
export function rateFilters(
  chosen: IndexEstimate | undefined, filters: readonly (IndexEstimate | undefined)[], read: RatedRead,
): readonly FilterRating[] {
  const ratings = filters.map((filter): FilterRating =>
    chosen && filter ? rating(chosen, filter, read) : { verdict: 'unknown' })
  const documents = ratings.map(rated => rated.verdict === 'used' ? rated.documents! : Infinity)
  const best = documents.indexOf(Math.min(...documents))
  return ratings.map((rated, at) =>
    rated.verdict === 'used' && at !== best ? { ...rated, verdict: 'more_rows' } : rated)
}

function rating(chosen: IndexEstimate, filter: IndexEstimate, { needed, savedMin }: RatedRead): FilterRating {
  const part = filter.rows / Math.max(chosen.all, filter.all, 1)
  // Without the filter, a document is read for each row until enough of them match.
  const documentsAlone = Math.min(chosen.rows, needed === null || part === 0 ? Infinity : Math.ceil(needed / part))
  const documents = Math.ceil(documentsAlone * part)
  const verdict = documentsAlone - documents < savedMin ? 'few_documents'
    : part > selectivePart ? 'not_selective'
      : filter.rows > rowsPerLookupMax * documentsAlone ? 'many_rows' : 'used'
  return { verdict, documentsAlone, documents }
}
