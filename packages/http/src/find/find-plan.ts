/** Plans a query: chooses its index from those of the database, and warns clients of the consequences. */
import {
  ApiError, designPrefix, planQuery, tiedIndexes, type NoPlan, type PlannedQuery, type QueryPlan, type RangeCounts,
} from '@sectional/core'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { adviceOf, suggestionHeaders } from './advice.ts'
import type { FindRequest } from './find-request.ts'
import { rateIntersections, type RatedFilter } from './index-intersection.ts'
import { rangesOf } from './index-scan.ts'
import { storedIndexes, type StoredIndex } from './stored-indexes.ts'

export interface FindPlan extends QueryPlan<StoredIndex> {
  /** Whether the matches must be sorted, because they are not read in the order of `sort`. */
  readonly sorted: boolean
  /** The indexes that could filter the rows of `index`; one of them may be used. */
  readonly filters: readonly RatedFilter[]
}

/** The plan without the indexes that filter rows. */
type SingleIndexPlan = Omit<FindPlan, 'filters'>

/**
 * Chooses the index of a query. When several are equally good by what the selector says, the one with the fewest rows
 * in the range of the query is chosen.
 *
 * @param readsAll whether all matches are read, whatever the limit of the request is
 * @throws ApiError `no_usable_index`, `invalid_index`
 */
export async function planFind(
  find: FindRequest, request: RequestContext, services: Services, readsAll = find.count,
): Promise<FindPlan> {
  const indexes = await storedIndexes(request, services)
  const query = plannedQuery(find, request)
  const plan = await chooseIndex(find, query, indexes, request, services)
  const { index: chosen, covering, sorted } = plan
  const filters = chosen === null || covering
    ? []
    : await rateIntersections({ find, query, chosen, readsAll: readsAll || sorted }, indexes, request, services)
  return { ...plan, filters }
}

async function chooseIndex(
  find: FindRequest, query: PlannedQuery, indexes: readonly StoredIndex[], request: RequestContext, services: Services,
): Promise<SingleIndexPlan> {
  const counts = await rowCounts(find, tiedIndexes(query, indexes), request, services)
  const plan = planQuery(query, indexes, counts)
  if (plan.kind === 'plan') return { ...plan, sorted: false }
  const mayBeSorted = plan.error === 'no_usable_index' && find.sortInMemory && find.allowFallback
  if (!mayBeSorted) throw planError(plan, find, request)
  const unsorted = planQuery({ ...query, sort: [] }, indexes, counts)
  if (unsorted.kind === 'no-plan') throw planError(unsorted, find, request)
  // An index of the fields that are sorted by would serve the query better than the one that is read now.
  return { ...unsorted, descending: isDescending(find), suggestion: plan.suggestion, sorted: true }
}

/** Estimates the rows that the query would read of each index; undefined when one of them is not known. */
async function rowCounts(
  find: FindRequest, indexes: readonly StoredIndex[], request: RequestContext, { coordinator }: Services,
): Promise<RangeCounts<StoredIndex> | undefined> {
  if (indexes.length === 0) return undefined
  const { partition } = find
  const candidates = indexes.map(index => ({ definition: index.definition, ranges: rangesOf(find, index, false) }))
  const estimates = await coordinator.estimateRows(
    request.database, candidates, { ...(partition !== undefined && { partition }) }, request,
  )
  const rows = estimates.map(estimate => estimate?.rows)
  const counts = new Map(indexes.map((index, at) => [index, rows[at]]))
  return rows.includes(undefined) ? undefined : counts as RangeCounts<StoredIndex>
}

function plannedQuery(
  { selector, sort, fields, useIndex: [ddoc, name], allowFallback, conflicts, partition, count }: FindRequest,
  { database }: RequestContext,
): PlannedQuery {
  return {
    selector, allowFallback, partition: partition ?? null, partitioned: database.partitioned,
    // A number has neither an order nor fields.
    ...(count ? { sort: [], fields: [], conflicts: false } : { sort, fields: shownFields(fields), conflicts }),
    useIndex: ddoc === undefined ? null : { ddoc: `${designPrefix}${ddoc}`, ...(name !== undefined && { name }) },
  }
}

function shownFields(fields: readonly string[]): readonly string[] | null {
  return fields.length === 0 ? null : fields
}

function isDescending({ sort }: FindRequest): boolean {
  return sort[0]?.direction === 'desc'
}

function planError({ error, reason, suggestion }: NoPlan, { advice }: FindRequest, request: RequestContext): ApiError {
  return new ApiError(error, reason, {
    headers: suggestionHeaders(suggestion),
    ...(advice && { members: { advice: adviceOf(suggestion, undefined, request.database) } }),
  })
}

const scanWarning = 'No matching index found, create an index to optimize query time.'
const ratioWarning = 'The number of documents examined is high in proportion to the number of results returned. '
  + 'Consider adding a more specific index to improve this.'

/**
 * Returns the warnings of an answer, one a line.
 *
 * @param examined documents that had to be read
 * @param ratioMax documents read for each result from which on there is a warning; 0: never
 */
export function warnings({ index, unused }: FindPlan, examined: number, results: number, ratioMax: number): string {
  const lines: string[] = []
  if (unused !== null) {
    const { ddoc, name } = unused
    lines.push(name === undefined
      ? `${ddoc} was not used because it does not contain a valid index for this query.`
      : `${ddoc}, ${name} was not used because it is not a valid index for this query.`)
  }
  if (index === null) lines.push(scanWarning)
  if (ratioMax > 0 && examined > ratioMax * Math.max(results, 1)) lines.push(ratioWarning)
  return lines.join('\n')
}
