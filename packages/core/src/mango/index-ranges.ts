import { partitionPrefix } from '../collation/partition-prefix.ts'
import { afterKeysWith, type SortKeyEncoder } from '../collation/sort-key.ts'
import type { RowRange } from '../contracts/index-replica.ts'
import type { Selector } from '../selectors/selector.ts'
import { fieldIntervals, isFixed, type KeyInterval, type KeyIntervals } from './key-intervals.ts'
import { isEmptyCombination } from './selector-fields.ts'

export interface IndexScan {
  readonly selector: Selector
  /** The columns of the index. */
  readonly fields: readonly { readonly name: string }[]
  /** For an index that is ordered by partition: the partition that is read. Otherwise null. */
  readonly partition: string | null
  readonly descending: boolean
}

/**
 * Returns the ranges of an index of kind `query` that have the rows of all documents that match the selector and are in
 * the index. They may have other rows, too. The ranges are disjoint and in the order of the scan; there are none when
 * no document can match.
 *
 * Leading columns with one possible value make up the beginning of the keys. The next column adds its intervals. Later
 * columns do not make the ranges narrower.
 *
 * @param encoder of root collation
 */
export function indexRanges(
  { selector, fields, partition, descending }: IndexScan, encoder: SortKeyEncoder,
): readonly RowRange[] {
  const columns = fieldIntervals(selector, fields.map(({ name }) => name), encoder)
  if (isEmptyCombination(selector) || columns.some(intervals => intervals.length === 0)) return []
  const fixed = columns.findIndex(intervals => !isFixed(intervals))
  const leading = fixed === -1 ? columns : columns.slice(0, fixed)
  const prefix = keyOf(leading, partition, encoder)
  const intervals = fixed === -1 ? [{ start: '', end: afterKeysWith('') }] : columns[fixed]!
  const ranges = intervals.map(interval => rangeOf(prefix, interval))
  return descending ? ranges.toReversed() : ranges
}

/**
 * Returns the key that all rows of documents have that match the selector; null when they may have several keys, or
 * when none can match.
 *
 * @param encoder of root collation
 */
export function onlyKey(
  { selector, fields, partition }: Omit<IndexScan, 'descending'>, encoder: SortKeyEncoder,
): string | null {
  const columns = fieldIntervals(selector, fields.map(({ name }) => name), encoder)
  return columns.every(isFixed) ? keyOf(columns, partition, encoder) + encoder.encode([]).slice(1) : null
}

/** Returns the beginning of the keys of rows whose first columns have one value each. */
function keyOf(columns: readonly KeyIntervals[], partition: string | null, encoder: SortKeyEncoder): string {
  const start = (partition === null ? '' : partitionPrefix(partition)) + encoder.encode([]).slice(0, 1)
  return columns.reduce((keys, [key]) => keys + key!.start, start)
}

function rangeOf(prefix: string, { start, end }: KeyInterval): RowRange {
  return { lower: { key: prefix + start, inclusive: true }, upper: { key: prefix + end, inclusive: false } }
}
