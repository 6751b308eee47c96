import { partitionPrefix } from '../collation/partition-prefix.ts'
import type { SortKeyEncoder } from '../collation/sort-key.ts'
import type { RowRange, ScannedPlace } from '../contracts/index-replica.ts'

/** A scan of ranges that `indexRanges` has returned. */
export interface ContinuedScan {
  readonly ranges: readonly RowRange[]
  readonly partition: string | null
  readonly descending: boolean
}

/**
 * Returns the place in a scan behind which a position lies, for `FindRequest.after`. The position may be from a scan of
 * other ranges of the index. Returns null when the whole scan lies before it.
 *
 * @param encoder of root collation
 * @throws ApiError `bad_request` for a key that is too long
 */
export function placeInScan(
  position: { readonly key: readonly unknown[]; readonly id: string }, scan: ContinuedScan, encoder: SortKeyEncoder,
): ScannedPlace | null {
  const { ranges, partition, descending } = scan
  const key = (partition === null ? '' : partitionPrefix(partition)) + encoder.encode(position.key)
  const range = ranges.findIndex(({ lower, upper }) => descending
    ? lower === undefined || key >= lower.key
    : upper === undefined || key <= upper.key)
  return range === -1 ? null : { key, id: position.id, number: 0, range }
}
