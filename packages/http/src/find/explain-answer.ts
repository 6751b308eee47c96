/** The answer of `_explain`. */
import { selectorFields, selectorJson, shownRange, type Selector } from '@sectional/core'
import type { RequestContext } from '../request/request-context.ts'
import { adviceOf } from './advice.ts'
import type { FindPlan } from './find-plan.ts'
import { filterReasons, usedFilter, type RatedFilter } from './index-intersection.ts'
import { noBookmark, type FindRequest } from './find-request.ts'
import { allDocumentsIndex, listedIndex, type StoredIndex } from './stored-indexes.ts'

/** Returns the body of the answer. */
export function explanation(find: FindRequest, plan: FindPlan, request: RequestContext): object {
  const { limit, skip, fields, selector, advice } = find
  const { database } = request
  const used = usedFilter(plan.filters)
  const others = plan.filters.filter(filter => filter !== used)
  return {
    dbname: database.name,
    index: shownIndex(plan.index),
    partitioned: database.partitioned,
    selector: selectorJson(selector),
    opts: options(find),
    limit, skip, fields,
    index_candidates: plan.rejected.map(({ index, usable, reason, ranking, covering }) => ({
      index: shownIndex(index),
      analysis: { usable, reasons: [{ name: reason }], ranking, covering },
    })),
    selector_hints: [hintsOf(selector)],
    mrargs: viewArguments(find, plan),
    covering: plan.covering,
    // CouchDB never sorts in memory, so the member is there only for queries that ask for it.
    ...(plan.sorted && { sort_in_memory: true }),
    // Nor does it read two indexes.
    ...(used && { intersection: { ...shownFilter(used), why: filterReasons.used } }),
    ...(advice && {
      advice: {
        ...adviceOf(plan.suggestion, plan.rejected, database),
        ...(others.length > 0 && {
          not_intersected: others.map(filter => ({ ...shownFilter(filter), why: filterReasons[filter.verdict] })),
        }),
      },
    }),
  }
}

function shownIndex(index: StoredIndex | null): object {
  return index === null ? allDocumentsIndex : listedIndex(index)
}

/** Shows a second index, and the estimated numbers of documents that are read without it and with it. */
function shownFilter({ index, documentsAlone, documents }: RatedFilter): object {
  return { index: listedIndex(index), ...(documents !== undefined && { documents_alone: documentsAlone, documents }) }
}

/** The options of the request as they were understood, in CouchDB's order. */
function options(find: FindRequest): object {
  return {
    use_index: find.useIndex, bookmark: find.bookmark === '' ? noBookmark : find.bookmark,
    limit: find.limit, skip: find.skip,
    sort: Object.fromEntries(find.sort.map(({ name, direction }) => [name, direction])),
    fields: find.fields, partition: find.partition ?? '', r: find.r, conflicts: find.conflicts, stale: find.stale,
    update: find.update, stable: find.stable, execution_stats: find.executionStats,
    allow_fallback: find.allowFallback,
  }
}

/** Which fields of the selector an index may serve. `indexable` are those with conditions on a range of keys. */
function hintsOf(selector: Selector): object {
  const { all, indexable } = selectorFields(selector)
  return {
    type: 'json', indexable_fields: [...indexable], unindexable_fields: [...all].filter(name => !indexable.has(name)),
  }
}

/** The query of the index as CouchDB describes it, with one range of keys. What is read may be several parts of it. */
function viewArguments({ selector, partition, stable, update, conflicts }: FindRequest, plan: FindPlan): object {
  const { start, end } = shownRange(selector, plan.index?.fields ?? null, plan.descending)
  return {
    include_docs: !plan.covering, view_type: 'map', reduce: false, partition: partition ?? null,
    start_key: start, end_key: end, direction: plan.descending ? 'rev' : 'fwd', stable, update, conflicts,
  }
}
