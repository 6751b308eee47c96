import { afterKeysWith, ApiError, partitionPrefix } from '@sectional/core'
import type { RowBound, RowRange, SortKeyEncoder } from '@sectional/core'

/** The parameters of a view query that select rows. Keys are JSON values; `undefined` means that one is absent. */
export interface ViewRangeOptions {
  /** The same as a start key and an end key with this value. */
  readonly key?: unknown
  /** The rows of these keys, in this order. A key that occurs twice selects its rows twice. */
  readonly keys?: readonly unknown[] | undefined
  /** The first key in the direction of the answer. */
  readonly startKey?: unknown
  /** The last key in the direction of the answer. */
  readonly endKey?: unknown
  /** Within the rows of the start key: the id of the first document. Ignored without a start key. */
  readonly startDocument?: string | undefined
  /** Within the rows of the end key: the id of the last document. Ignored without an end key. */
  readonly endDocument?: string | undefined
  /** False: the rows of the end key (with `endDocument`: those of that document and behind it) do not belong to it. */
  readonly inclusiveEnd: boolean
  readonly descending: boolean
  /** Selects the rows of one partition of an index that is ordered by partition (`partitionPrefix`). */
  readonly partition?: string | undefined
}

/**
 * Returns the ranges of an index that a query reads, in the order of the answer.
 *
 * A range that is the wrong way round is refused in ascending direction. In descending direction it is returned, and
 * contains no row: clients often add `descending` to an ascending query without exchanging its keys.
 *
 * @param encoder has the collation of the index
 * @throws ApiError `query_parse_error` for an ascending range that cannot contain a row; `bad_request` for a key that
 * is too long or nested too deeply
 */
export function viewRanges(options: ViewRangeOptions, encoder: SortKeyEncoder): readonly RowRange[] {
  const { key, keys, startKey = key, endKey = key, descending } = options
  if (keys === undefined) return [keyRange({ ...options, startKey, endKey }, encoder)]
  const ranges = keys.map(each => keyRange({ ...options, startKey: each, endKey: each }, encoder))
  return descending ? ranges.toReversed() : ranges
}

function keyRange(options: ViewRangeOptions, encoder: SortKeyEncoder): RowRange {
  const { startKey, endKey, startDocument, endDocument, inclusiveEnd, descending, partition } = options
  const prefix = partition === undefined ? '' : partitionPrefix(partition)
  const bound = (key: unknown, id: string | undefined, inclusive: boolean): RowBound | undefined =>
    key === undefined ? undefined : { key: prefix + encoder.encode(key), ...(id !== undefined && { id }), inclusive }
  const start = bound(startKey, startDocument, true)
  const end = bound(endKey, endDocument, inclusiveEnd)
  if (!descending && start !== undefined && end !== undefined && start.key > end.key) {
    const reason = 'No rows can match your key range, reverse your start_key and end_key or set descending=true'
    throw new ApiError('query_parse_error', reason)
  }
  const [first, last] = descending ? [end, start] : [start, end]
  const lower = first ?? (partition === undefined ? undefined : { key: prefix, inclusive: true })
  const upper = last ?? (partition === undefined ? undefined : { key: afterKeysWith(prefix), inclusive: false })
  return { ...(lower && { lower }), ...(upper && { upper }) }
}
