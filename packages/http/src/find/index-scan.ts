/** What a query reads of an index. */
import { indexRanges, SortKeyEncoder, type RowRange } from '@sectional/core'
import type { FindRequest } from './find-request.ts'
import type { StoredIndex } from './stored-indexes.ts'

/** Encodes the keys of all indexes of queries. */
export const encoder = new SortKeyEncoder('root')

/** Returns the ranges of the index that the query reads. */
export function rangesOf(
  { selector, partition }: FindRequest, { fields, partitioned }: StoredIndex, descending: boolean,
): readonly RowRange[] {
  return indexRanges({ selector, fields, partition: partitioned ? partition ?? null : null, descending }, encoder)
}
