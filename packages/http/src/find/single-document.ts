/** Queries that may find one document only, because the client must not see the others. */
import { planQuery, type Selector } from '@sectional/core'
import type { RequestContext } from '../request/request-context.ts'
import type { FindPlan } from './find-plan.ts'
import type { FindRequest } from './find-request.ts'

/** Returns the query that finds at most the document with this id. One document needs no order. */
export function findOnly(id: string, find: FindRequest): FindRequest {
  return { ...find, selector: onlyId(id, find.selector), sort: [], useIndex: [] }
}

/** Selectors without operands mean something else as operands: `{}` would match nothing, and the others everything. */
function onlyId(id: string, selector: Selector): Selector {
  const own: Selector = { kind: 'field', path: ['_id'], test: { operator: '$eq', value: id }, negated: false }
  if (selector.kind === 'everything') return own
  return selector.kind !== 'field' && selector.operands.length === 0 ? selector
    : { kind: 'and', operands: [own, selector] }
}

/**
 * Returns a plan that reads only the ids that the selector allows. An index could have rows of other documents, whose
 * number the statistics of the query would show.
 */
export function planWithoutIndexes({ selector }: FindRequest, { database }: RequestContext): FindPlan {
  const plan = planQuery({
    selector, sort: [], fields: null, conflicts: false, useIndex: null, allowFallback: true, partition: null,
    partitioned: database.partitioned,
  }, [])
  if (plan.kind === 'no-plan') throw new TypeError(plan.reason)
  return { ...plan, sorted: false, filters: [] }
}
