/** The bodies of `_aggregate`. */
import { aggregateFields, parseAggregateQuery, type AggregateQuery, type JsonObject } from '@sectional/core'
import { parseFindRequest, type FindDefaults, type FindRequest } from './find-request.ts'
import { requireKnownMembers } from './option-values.ts'

export interface AggregateRequest {
  /** Selects the documents. Its fields are those that are aggregated. */
  readonly find: FindRequest
  readonly aggregate: AggregateQuery
}

const members = new Set([
  'selector', 'group_by', 'aggregates', 'use_index', 'partition', 'stale', 'update', 'stable', 'execution_stats',
  'allow_fallback', 'advice',
])

/** @throws ApiError 400 with the error of the first member that is not valid */
export function parseAggregateRequest(body: JsonObject, defaults: FindDefaults): AggregateRequest {
  requireKnownMembers(body, members)
  const aggregate = parseAggregateQuery(body)
  const { group_by: _groupBy, aggregates: _aggregates, ...selection } = body
  const names = aggregateFields(aggregate)
  // No names would mean all fields, which no index has.
  const fields = names.length === 0 ? ['_id'] : names
  return { aggregate, find: parseFindRequest({ ...selection, fields }, defaults) }
}
