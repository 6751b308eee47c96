/** From the plan of a query to the query of the coordinator, and from its last match to the bookmark. */
import {
  ApiError, decodeBookmark, encodeBookmark, hasExactRanges, idBounds, parseFieldPath, placeInScan, queryRowValues,
  type FindPosition, type ScannedPlace,
} from '@sectional/core'
import type { FindQuery, FindQuerySource, MatchPosition, MemorySort, OperationContext } from '@sectional/cluster'
import type { Services } from '../services/services.ts'
import type { FindPlan } from './find-plan.ts'
import { noBookmark, type FindRequest } from './find-request.ts'
import { withinOf } from './index-intersection.ts'
import { encoder, rangesOf } from './index-scan.ts'
import { shown } from './option-values.ts'
import { ScanTime } from './scan-time.ts'

/**
 * Returns the query that executes a plan, or null when no document can match.
 *
 * @throws ApiError `invalid_bookmark`
 */
export function findQuery(find: FindRequest, plan: FindPlan, { options }: Services): FindQuery | null {
  const { selector, partition, skip, limit, r, bookmark } = find
  const position = bookmark === '' ? null : readPosition(find, plan)
  const source = sourceOf(find, plan)
  const after = source === null || position === null ? undefined : placeBehind(position, source, find, plan)
  if (source === null || after === null) return null
  return {
    selector, source, isExact: isExact(find, plan), skip, limit,
    descending: plan.descending, documents: contentOf(find, plan), timeoutMs: options.queryTimeoutMs,
    update: find.update && find.stale === false,
    ...(after && { after }),
    ...(r > 1 && { r }),
    ...(partition !== undefined && { partition }),
    ...(plan.sorted && { sort: memorySort(find, options) }),
  }
}

/**
 * Begins the time in which a query must find a match, or all of them for a number. Indexes may be built meanwhile.
 */
export function scanTime(
  { source, timeoutMs }: Pick<FindQuery, 'source' | 'timeoutMs'>, context: OperationContext,
  { runtime, options }: Services,
): ScanTime {
  const buildMs = source.kind === 'index' ? timeoutMs : 0
  return new ScanTime(runtime.clock, options.scanTimeoutMs + buildMs, context)
}

function memorySort({ sort }: FindRequest, { sortedRowsMax: rowsMax }: Services['options']): MemorySort {
  return { fields: sort.map(({ name }) => parseFieldPath(name)), rowsMax }
}

/** Returns where the query looks for matches, or null when no document can match. */
export function sourceOf(
  find: FindRequest, { index, descending, sorted, filters }: FindPlan,
): FindQuerySource | null {
  const isReversed = descending && !sorted
  if (index === null) {
    const bounds = idBounds(find.selector, find.partition ?? null, isReversed)
    return bounds && { kind: 'documents', ...bounds }
  }
  const ranges = rangesOf(find, index, isReversed)
  if (ranges.length === 0) return null
  return { kind: 'index', definition: index.definition, ranges, ...withinOf(find, filters) }
}

/** Whether the ranges of the index have rows of matching documents only. */
export function isExact({ selector }: FindRequest, { index }: FindPlan): boolean {
  return index !== null && hasExactRanges(selector, index.fields, encoder)
}

/** Whether the rows of the index have all fields of the answer, so that no document is read. */
export function isCovered({ r }: FindRequest, { covering, sorted }: FindPlan): boolean {
  return covering && !sorted && r === 1
}

function contentOf(find: FindRequest, plan: FindPlan): FindQuery['documents'] {
  if (isCovered(find, plan)) return 'none'
  return find.conflicts ? 'leaves' : 'winner'
}

/** Returns the position that the bookmark of a request names. */
function readPosition({ bookmark }: FindRequest, plan: FindPlan): FindPosition {
  const position = decodeBookmark(bookmark)
  if (position === null || (position.key !== undefined) !== hasKeys(plan)) {
    throw new ApiError('invalid_bookmark', `Invalid bookmark value: ${shown(bookmark)}`)
  }
  return position
}

/** Returns the place behind which the page begins, or null when nothing is behind it. */
function placeBehind(
  { id, key }: FindPosition, source: FindQuerySource, { partition }: FindRequest, plan: FindPlan,
): ScannedPlace | null {
  if (key === undefined) return { range: 0, key: '', id, number: 0 }
  if (plan.sorted) return { range: 0, key: encoder.encode(key), id, number: 0 }
  const { ranges } = source as FindQuerySource & { kind: 'index' }
  const scope = plan.index!.partitioned ? partition ?? null : null
  return placeInScan({ id, key }, { ranges, partition: scope, descending: plan.descending }, encoder)
}

/**
 * Returns the bookmark of a page.
 *
 * @param last the position of the last match that was returned or left out; undefined: there was none. The page then
 * repeats the bookmark of the request, so that documents can be found with it that are written later
 */
export function bookmarkAfter(last: MatchPosition | undefined, find: FindRequest, plan: FindPlan): string {
  if (last === undefined) return find.bookmark === '' ? noBookmark : find.bookmark
  const { id, value } = last
  if (!hasKeys(plan)) return encodeBookmark({ id })
  return encodeBookmark({ id, key: queryRowValues(value) })
}

/** Whether the matches are ordered by values of fields, and not by their ids alone. */
function hasKeys({ index, sorted }: FindPlan): boolean {
  return index !== null || sorted
}
