/** The indexes of a database as candidates for a query: those that can serve it, best first, and the others. */
import { compareUtf8 } from '../encoding/text-order.ts'
import { analyseIndex, isNamed, type UnusableReason } from './index-usability.ts'
import type { JsonIndex, PlannedQuery, RejectionReason } from './planned-query.ts'
import type { SelectorFields } from './selector-fields.ts'

/**
 * The number of rows in the ranges that a query would read of an index. It decides only between indexes that leave
 * equally many fields outside of their prefixes.
 */
export type RangeCounts<Index> = ReadonlyMap<Index, number>

/** A usable index with all that decides between usable indexes. */
export interface Candidate<Index> {
  readonly index: Index
  /** Whether the query names it in `use_index`. */
  readonly isNamed: boolean
  /** Number of indexable fields of the selector that are outside of the prefix of the index. */
  readonly outside: number
  /** Number of rows in the ranges of the index; 0 without counts, and Infinity without a count of this one. */
  readonly rows: number
}

export interface Candidates<Index> {
  /** Best first: those that the query names before all others. */
  readonly usable: readonly Candidate<Index>[]
  /** In the order of their names. */
  readonly unusable: readonly { readonly index: Index; readonly reason: UnusableReason }[]
}

export function candidatesOf<Index extends JsonIndex>(
  query: PlannedQuery, fields: SelectorFields, indexes: readonly Index[], counts?: RangeCounts<Index>,
): Candidates<Index> {
  const usable: Candidate<Index>[] = []
  const unusable: { index: Index; reason: UnusableReason }[] = []
  for (const index of indexes) {
    const reason = analyseIndex(query, fields, index)
    if (reason === null) {
      const outside = fields.indexable.size - prefixLength(index, fields)
      usable.push({ index, isNamed: isNamed(query.useIndex, index), outside, rows: rowsOf(index, counts) })
    } else unusable.push({ index, reason })
  }
  return {
    usable: usable.sort(compareCandidates), unusable: unusable.sort((a, b) => compareNames(a.index, b.index)),
  }
}

function rowsOf<Index>(index: Index, counts: RangeCounts<Index> | undefined): number {
  return counts === undefined ? 0 : counts.get(index) ?? Infinity
}

/** Returns why CouchDB's rule, or the counts, prefer the winner. */
export function lossReason(loser: Candidate<JsonIndex>, winner: Candidate<JsonIndex>): RejectionReason {
  if (winner.isNamed && !loser.isNamed) return 'excluded_by_user'
  if (loser.outside > winner.outside) return 'less_overlap'
  if (loser.rows > winner.rows) return 'more_rows'
  return loser.index.fields.length > winner.index.fields.length ? 'too_many_fields' : 'alphabetically_comes_after'
}

/** Returns the number of leading columns with a condition that a range of keys may serve. */
function prefixLength({ fields }: JsonIndex, { indexable }: SelectorFields): number {
  const end = fields.findIndex(({ name }) => !indexable.has(name))
  return end === -1 ? fields.length : end
}

function compareCandidates(a: Candidate<JsonIndex>, b: Candidate<JsonIndex>): number {
  return Number(b.isNamed) - Number(a.isNamed) || a.outside - b.outside || a.rows - b.rows
    || a.index.fields.length - b.index.fields.length || compareNames(a.index, b.index)
}

function compareNames(a: JsonIndex, b: JsonIndex): number {
  return compareUtf8(a.ddoc, b.ddoc) || compareUtf8(a.name, b.name)
}
