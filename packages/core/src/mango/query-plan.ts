/**
 * Chooses the index that a query reads, by the rule of CouchDB: the index that leaves the fewest of the selector's
 * fields outside of its prefix, then the one with the fewest columns, then the first one by name.
 */
import { compareUtf8 } from '../encoding/text-order.ts'
import { suggestIndex } from './index-suggestion.ts'
import { analyseIndex, type UnusableReason } from './index-usability.ts'
import { coversQuery } from './covering.ts'
import type {
  JsonIndex, NoPlan, PlannedQuery, QueryPlan, RejectedIndex, RejectionReason, UseIndex,
} from './planned-query.ts'
import { selectorFields, type SelectorFields } from './selector-fields.ts'

/** A usable index with all that decides between usable indexes. */
interface Candidate<Index> {
  readonly index: Index
  /** Number of indexable fields of the selector that are outside of the prefix of the index. */
  readonly outside: number
  /** Number of rows in the ranges of the index; 0 when it is not known. */
  readonly rows: number
}

/**
 * The number of rows in the ranges that a query would read of an index. It decides only between indexes that leave
 * equally many fields outside of their prefixes.
 */
export type RangeCounts<Index> = ReadonlyMap<Index, number>

/**
 * Plans a query.
 *
 * @param indexes all indexes of the database
 * @param counts numbers of rows, of all indexes that `tiedIndexes` returns; absent: names and columns decide
 */
export function planQuery<Index extends JsonIndex>(
  query: PlannedQuery, indexes: readonly Index[], counts?: RangeCounts<Index>,
): QueryPlan<Index> | NoPlan {
  const fields = selectorFields(query.selector)
  const unusable = new Map(indexes.map(index => [index, analyseIndex(query, fields, index)]))
  const candidates = indexes.filter(index => unusable.get(index) === null)
    .map(index => candidateOf(index, fields, counts))
    .sort(compareCandidates)
  const { useIndex } = query
  const named = useIndex === null ? [] : candidates.filter(({ index }) => isNamed(useIndex, index))
  const allDocuments = allDocumentsReason(query, fields)
  const failure = failureOf(query, fields, { named, candidates, allDocuments })
  if (failure !== null) return failure
  const chosen = named[0] ?? candidates[0] ?? null
  return {
    kind: 'plan',
    index: chosen?.index ?? null,
    descending: query.sort[0]?.direction === 'desc',
    covering: chosen !== null && coversQuery(query, fields, chosen.index),
    unused: named.length === 0 ? useIndex : null,
    rejected: rejectedIndexes(query, fields, { chosen, candidates, unusable, allDocuments, isNamed: named.length > 0 }),
    suggestion: chosen === null ? suggestIndex(query, fields) : null,
  }
}

/**
 * Returns the usable indexes of which a count of rows would choose one, when there are several: those that the query
 * names, or all, that leave equally few fields outside of their prefixes. Their counts improve the plan.
 */
export function tiedIndexes<Index extends JsonIndex>(query: PlannedQuery, indexes: readonly Index[]): readonly Index[] {
  const fields = selectorFields(query.selector)
  const usable = indexes.filter(index => analyseIndex(query, fields, index) === null)
    .map(index => candidateOf(index, fields, undefined))
  const { useIndex } = query
  const named = useIndex === null ? [] : usable.filter(({ index }) => isNamed(useIndex, index))
  const considered = named.length > 0 ? named : usable
  const fewest = Math.min(...considered.map(({ outside }) => outside))
  const tied = considered.filter(({ outside }) => outside === fewest)
  return tied.length > 1 ? tied.map(({ index }) => index) : []
}

export function isNamed({ ddoc, name }: UseIndex, index: JsonIndex): boolean {
  return index.ddoc === ddoc && (name === undefined || index.name === name)
}

function candidateOf<Index extends JsonIndex>(
  index: Index, { indexable }: SelectorFields, counts: RangeCounts<Index> | undefined,
): Candidate<Index> {
  const outsideAt = index.fields.findIndex(({ name }) => !indexable.has(name))
  const prefix = outsideAt === -1 ? index.fields.length : outsideAt
  return { index, outside: indexable.size - prefix, rows: counts?.get(index) ?? 0 }
}

function compareCandidates(a: Candidate<JsonIndex>, b: Candidate<JsonIndex>): number {
  return a.outside - b.outside || a.rows - b.rows || a.index.fields.length - b.index.fields.length
    || compareNames(a.index, b.index)
}

function compareNames(a: JsonIndex, b: JsonIndex): number {
  return compareUtf8(a.ddoc, b.ddoc) || compareUtf8(a.name, b.name)
}

/** Why all documents cannot be read for the query; null when they can. */
function allDocumentsReason({ sort }: PlannedQuery, { indexable }: SelectorFields): UnusableReason | null {
  if (sort.length === 0) return null
  return sort.length === 1 && sort[0]!.name === '_id' && indexable.has('_id') ? null : 'field_mismatch'
}

interface Choices<Index> {
  readonly candidates: readonly Candidate<Index>[]
  readonly allDocuments: UnusableReason | null
}

function failureOf(
  query: PlannedQuery, fields: SelectorFields,
  { named, candidates, allDocuments }: Choices<JsonIndex> & { readonly named: readonly unknown[] },
): NoPlan | null {
  const { useIndex, allowFallback, sort, partition, partitioned } = query
  const failure = (error: NoPlan['error'], reason: string): NoPlan =>
    ({ kind: 'no-plan', error, reason, suggestion: suggestIndex(query, fields) })
  if (useIndex !== null && named.length === 0 && !allowFallback) {
    const name = useIndex.name === undefined ? useIndex.ddoc : `${useIndex.ddoc}, ${useIndex.name}`
    return failure('invalid_index', `${name} specified by \`use_index\` could not be found or it is not suitable.`)
  }
  if (candidates.length > 0) return null
  if (sort.length > 0 && allDocuments !== null) {
    const scope = partition !== null ? ' partitioned' : partitioned ? ' global' : ''
    return failure('no_usable_index', `No${scope} index exists for this sort, try indexing by the sort fields.`)
  }
  if (!allowFallback) {
    return failure('invalid_index', 'You must specify an index with the `use_index` parameter.')
  }
  return null
}

function rejectedIndexes<Index extends JsonIndex>(
  query: PlannedQuery, fields: SelectorFields,
  { chosen, candidates, unusable, allDocuments, isNamed: byUser }: Choices<Index> & {
    readonly chosen: Candidate<Index> | null
    readonly unusable: ReadonlyMap<Index, UnusableReason | null>
    readonly isNamed: boolean
  },
): readonly RejectedIndex<Index>[] {
  const losers = candidates.filter(candidate => candidate !== chosen)
  const lastRanking = losers.length + (allDocuments === null && chosen !== null ? 2 : 1)
  const worse = losers.map((candidate, at): RejectedIndex<Index> => ({
    index: candidate.index, usable: true, ranking: at + 1, covering: coversQuery(query, fields, candidate.index),
    reason: byUser && !isNamed(query.useIndex!, candidate.index)
      ? 'excluded_by_user'
      : lossReason(candidate, chosen!),
  }))
  const others = [...unusable].filter(([, reason]) => reason !== null)
    .sort(([a], [b]) => compareNames(a, b))
    .map(([index, reason]): RejectedIndex<Index> => ({
      index, usable: false, reason: reason!, ranking: lastRanking, covering: coversQuery(query, fields, index),
    }))
  if (chosen === null) return [...worse, ...others]
  return [...worse, ...others, {
    index: null, usable: allDocuments === null, reason: allDocuments ?? 'unfavored_type',
    ranking: allDocuments === null ? losers.length + 1 : lastRanking, covering: null,
  }]
}

function lossReason(loser: Candidate<JsonIndex>, winner: Candidate<JsonIndex>): RejectionReason {
  if (loser.outside > winner.outside) return 'less_overlap'
  if (loser.rows > winner.rows) return 'more_rows'
  return loser.index.fields.length > winner.index.fields.length ? 'too_many_fields' : 'alphabetically_comes_after'
}
