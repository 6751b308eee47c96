/**
 * Chooses the index that a query reads, by the rule of CouchDB: the index that leaves the fewest of the selector's
 * fields outside of its prefix, then the one with the fewest columns, then the first one by name.
 */
import { coversQuery } from './covering.ts'
import { type Candidates, candidatesOf, lossReason, type RangeCounts } from './index-candidates.ts'
import { suggestIndex } from './index-suggestion.ts'
import type { UnusableReason } from './index-usability.ts'
import type { JsonIndex, NoPlan, PlannedQuery, QueryPlan, RejectedIndex } from './planned-query.ts'
import { selectorFields, type SelectorFields } from './selector-fields.ts'

/**
 * Plans a query.
 *
 * @param indexes all indexes of the database
 * @param counts numbers of rows of the indexes that `tiedIndexes` returns; absent: columns and names decide
 */
export function planQuery<Index extends JsonIndex>(
  query: PlannedQuery, indexes: readonly Index[], counts?: RangeCounts<Index>,
): QueryPlan<Index> | NoPlan {
  const fields = selectorFields(query.selector)
  const candidates = candidatesOf(query, fields, indexes, counts)
  const failure = failureOf(query, fields, candidates)
  if (failure !== null) return failure
  const [chosen] = candidates.usable
  return {
    kind: 'plan',
    index: chosen?.index ?? null,
    descending: query.sort[0]?.direction === 'desc',
    covering: chosen !== undefined && coversQuery(query, fields, chosen.index),
    unused: chosen?.isNamed === true ? null : query.useIndex,
    rejected: rejectedIndexes(query, fields, candidates),
    suggestion: chosen === undefined ? suggestIndex(query, fields) : null,
  }
}

/** Most indexes that are compared by their counts of rows. */
const tiedIndexesMax = 8

/**
 * Returns the usable indexes of which a count of rows would choose one, when there are several: those that the query
 * names, or all, that leave equally few fields outside of their prefixes. Of very many, the first ones are returned.
 */
export function tiedIndexes<Index extends JsonIndex>(query: PlannedQuery, indexes: readonly Index[]): readonly Index[] {
  const { usable: [first, ...others] } = candidatesOf(query, selectorFields(query.selector), indexes)
  const tied = others.filter(({ isNamed, outside }) => isNamed === first!.isNamed && outside === first!.outside)
  return tied.length === 0 ? [] : [first!, ...tied].slice(0, tiedIndexesMax).map(({ index }) => index)
}

/** Why all documents cannot be read for the query; null when they can. */
function allDocumentsReason({ sort }: PlannedQuery, { indexable }: SelectorFields): UnusableReason | null {
  if (sort.length === 0) return null
  return sort.length === 1 && sort[0]!.name === '_id' && indexable.has('_id') ? null : 'field_mismatch'
}

function failureOf(query: PlannedQuery, fields: SelectorFields, { usable }: Candidates<JsonIndex>): NoPlan | null {
  const { useIndex, allowFallback, partition, partitioned } = query
  const failure = (error: NoPlan['error'], reason: string): NoPlan =>
    ({ kind: 'no-plan', error, reason, suggestion: suggestIndex(query, fields) })
  if (useIndex !== null && !allowFallback && usable[0]?.isNamed !== true) {
    const name = useIndex.name === undefined ? useIndex.ddoc : `${useIndex.ddoc}, ${useIndex.name}`
    return failure('invalid_index', `${name} specified by \`use_index\` could not be found or it is not suitable.`)
  }
  if (usable.length > 0) return null
  if (allDocumentsReason(query, fields) !== null) {
    const scope = partition !== null ? ' partitioned' : partitioned ? ' global' : ''
    return failure('no_usable_index', `No${scope} index exists for this sort, try indexing by the sort fields.`)
  }
  if (!allowFallback) return failure('invalid_index', 'You must specify an index with the `use_index` parameter.')
  return null
}

/** Returns all indexes but the chosen one, and the list of all documents when an index was chosen. */
function rejectedIndexes<Index extends JsonIndex>(
  query: PlannedQuery, fields: SelectorFields, { usable: [chosen, ...losers], unusable }: Candidates<Index>,
): readonly RejectedIndex<Index>[] {
  const covering = (index: Index): boolean => coversQuery(query, fields, index)
  const worse = losers.map((loser, at): RejectedIndex<Index> => ({
    index: loser.index, usable: true, reason: lossReason(loser, chosen!), ranking: at + 1,
    covering: covering(loser.index),
  }))
  const reason = allDocumentsReason(query, fields)
  const scan: RejectedIndex<Index> = {
    index: null, usable: reason === null, reason: reason ?? 'unfavored_type', ranking: losers.length + 1,
    covering: null,
  }
  // All that cannot serve the query come after all that can, in one rank.
  const lastRanking = losers.length + (chosen !== undefined && scan.usable ? 2 : 1)
  const others = unusable.map(({ index, reason: why }): RejectedIndex<Index> => ({
    index, usable: false, reason: why, ranking: lastRanking, covering: covering(index),
  }))
  return chosen === undefined ? others : [...worse, ...others, scan]
}
