/** Decides whether a second index filters the rows of the chosen one, by estimates of their numbers of rows. */
import {
  filterIndexes, onlyKey, rateFilters, type FilterRating, type FilterVerdict, type PlannedQuery,
} from '@sectional/core'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import type { FindRequest } from './find-request.ts'
import { encoder, rangesOf } from './index-scan.ts'
import type { StoredIndex } from './stored-indexes.ts'

/** An index that could filter the rows of the chosen one. */
export interface RatedFilter extends FilterRating { readonly index: StoredIndex }

export interface FilterScope {
  readonly find: FindRequest
  readonly query: PlannedQuery
  readonly chosen: StoredIndex
  /** Whether all matches are read, and not only the first ones. */
  readonly readsAll: boolean
}

/**
 * Rates the indexes that could filter the rows of the chosen one; at most one is `used`. The rows are counted only when
 * there are such indexes. A query that does not bring its indexes up to date reads one index, because two states of
 * different age may have no row in common.
 */
export async function rateIntersections(
  { find, query, chosen, readsAll }: FilterScope, indexes: readonly StoredIndex[], request: RequestContext,
  { coordinator, options: { intersectionSavedMin: savedMin } }: Services,
): Promise<readonly RatedFilter[]> {
  if (savedMin === 0 || !find.update || find.stale !== false) return []
  const filters = filterIndexes(query, chosen, indexes, encoder)
  if (filters.length === 0) return []
  const read = [chosen, ...filters].map(index => ({
    definition: index.definition, ranges: rangesOf(find, index, false),
  }))
  const [first, ...others] = await coordinator.estimateRows(request.database, read, {}, request)
  const needed = readsAll ? null : find.skip + find.limit
  return rateFilters(first, others, { needed, savedMin }).map((rating, at) => ({ ...rating, index: filters[at]! }))
}

/** Returns what a source of matches has of the index that filters its rows. */
export function withinOf(
  { selector }: FindRequest, filters: readonly RatedFilter[],
): { readonly within?: { readonly definition: StoredIndex['definition']; readonly key: string } } {
  const used = usedFilter(filters)
  const key = used && onlyKey({ selector, fields: used.index.fields, partition: null }, encoder)
  return used !== undefined && typeof key === 'string' ? { within: { definition: used.index.definition, key } } : {}
}

export function usedFilter(filters: readonly RatedFilter[]): RatedFilter | undefined {
  return filters.find(({ verdict }) => verdict === 'used')
}

/** Why an index filters the rows of the chosen one, or does not. */
export const filterReasons: Readonly<Record<FilterVerdict, string>> = {
  used: 'Rows of the chosen index are looked up in this one, and only the documents of common rows are read.',
  few_documents: 'It would save fewer documents than mango/intersection_saved_min.',
  many_rows: 'It has too many rows for the rows of the chosen index that would be looked up.',
  not_selective: 'More than half of the documents have a row in the range of the selector.',
  more_rows: 'Another index filters the rows of the chosen one better.',
  unknown: 'The rows of one of the indexes are not known: it is not built, or was not read in time.',
}
