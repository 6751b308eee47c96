/** Parameters of a query of a view, from the query string and the body. */
import { ApiError, type JsonObject } from '@sectional/core'
import type { Query } from '../request/query.ts'
import {
  boundedLimit, checkKeysWithRange, checkUngrouped, checkUnreduced, groupLevelOf, invalidKeys, rowParameters,
  rowParametersOfQuery, rowQueries, type IndexUpdate, type RowParameters,
} from '../lists/row-parameters.ts'

/** What the parameters of a query must fit. */
export interface QueriedView {
  /** Whether the view has a reduce function. */
  readonly hasReduce: boolean
  /** Whether its rows are ordered by partition, so that each query reads one partition. */
  readonly isPartitioned: boolean
  /** The partition that the path names. It overrides the parameter. */
  readonly partition?: string
  /** Greatest limit of rows, and the one of a query that names none. Infinity: there is no limit. */
  readonly limitMax: number
}

/** Bounds and keys are JSON values; `undefined` means that one is absent. */
export interface ViewParameters extends Pick<
  RowParameters,
  'inclusiveEnd' | 'descending' | 'skip' | 'limit' | 'includeDocs' | 'conflicts' | 'attachments' | 'encodingInfo'
  | 'updateSequence' | 'sorted'
> {
  /** The rows of these keys, in this order, each as often as it is named; never one key, which is a range. */
  readonly keys: readonly unknown[] | undefined
  /** The first and the last key in the direction of the answer. */
  readonly startKey: unknown
  readonly endKey: unknown
  /** Within the rows of the start key: the id of the first document. Has no meaning without a start key. */
  readonly startDocument: string | undefined
  readonly endDocument: string | undefined
  /** By how many elements of their keys the rows are grouped, 0: all rows are one group. null: rows are not reduced. */
  readonly groupLevel: number | 'exact' | null
  /** Whether the index is updated before it is read, not at all, or after it was read (`lazy`). */
  readonly update: IndexUpdate
  /** Whether the same replica should answer each query. */
  readonly stable: boolean
  readonly partition: string | undefined
}

/**
 * Reads the parameters of a GET or POST.
 *
 * @param viewOf is called when each parameter is valid for itself; its error comes before those of combinations
 * @throws ApiError `query_parse_error`, `bad_request`, `illegal_partition`
 */
export function viewParameters(
  query: Query, body: JsonObject | null, viewOf: () => QueriedView,
): Readonly<ViewParameters> {
  if (body?.['queries'] !== undefined) {
    rowQueries(body)
    throw new ApiError('bad_request', 'The `queries` parameter is no longer supported at this endpoint')
  }
  const parameters = rowParameters(query, body, 'member')
  return finish(parameters, viewOf())
}

/**
 * Reads the parameters of a GET or POST for a list function. As in CouchDB, which is less strict with a view alone, one
 * key must not be combined with another range, and reduced rows of it need an exact group.
 *
 * @param viewOf as for `viewParameters`
 * @throws ApiError `query_parse_error`, `illegal_partition`
 */
export function listedViewParameters(
  query: Query, body: JsonObject | null, viewOf: () => QueriedView,
): Readonly<ViewParameters> {
  const parameters = rowParameters(query, body, null)
  return finish(parameters, viewOf(), true)
}

/**
 * Reads the parameters of one of the `queries` of a body (`rowQueries`), which override the query string.
 *
 * @throws ApiError `query_parse_error`, `bad_request`, `illegal_partition`
 */
export function viewQueryParameters(query: Query, member: unknown, view: QueriedView): Readonly<ViewParameters> {
  return finish(rowParametersOfQuery(query, member), view)
}

/**
 * Checks the parameters in the order of CouchDB, because clients compare the reason when several are wrong. Lists all
 * members, since to spread them takes longer than to read the parameters.
 */
function finish(parameters: RowParameters, view: QueriedView, isListed = false): Readonly<ViewParameters> {
  const {
    startId: startDocument, endId: endDocument, inclusiveEnd, descending, skip, includeDocs, conflicts, attachments,
    encodingInfo, updateSequence, sorted,
  } = parameters
  const isReduced = view.hasReduce && parameters.reduce !== false
  const limit = boundedLimit(parameters.limit, view.limitMax)
  const groupLevel = groupLevelOf(parameters)
  if (isReduced) checkGroups(parameters, groupLevel, isListed)
  else checkUnreduced(parameters)
  const { keys, startKey, endKey } = selectionOf(parameters, isListed)
  if (!isReduced) checkUngrouped(parameters)
  else if (includeDocs) throw new ApiError('query_parse_error', '`include_docs` is invalid for reduce')
  const { stable, update } = freshnessOf(parameters)
  const partition = partitionOf(parameters, view)
  return {
    keys, startKey, endKey, startDocument, endDocument, inclusiveEnd, descending, skip, limit, includeDocs, conflicts,
    attachments, encodingInfo, updateSequence, sorted, groupLevel: isReduced ? groupLevel : null, update, stable,
    partition,
  }
}

/** A single key is a range. */
function selectionOf(
  parameters: RowParameters, isListed: boolean,
): Pick<ViewParameters, 'keys' | 'startKey' | 'endKey'> {
  const { keys, start, end } = parameters
  const range = { keys: undefined, startKey: start?.key, endKey: end?.key }
  if (keys === undefined || (isSingle(keys) && !isListed)) return range
  if (!Array.isArray(keys)) return invalidKeys()
  checkKeysWithRange(keys, parameters)
  return isSingle(keys) ? range : { keys, startKey: undefined, endKey: undefined }
}

function isSingle(keys: unknown): boolean {
  return Array.isArray(keys) && keys.length === 1
}

function checkGroups({ keys }: RowParameters, groupLevel: number | 'exact', isListed: boolean): void {
  if (groupLevel !== 'exact' && Array.isArray(keys) && (isListed || !isSingle(keys))) {
    throw new ApiError('query_parse_error', 'Multi-key fetches for reduce views must use `group=true`')
  }
}

function freshnessOf({ stale, stable, update }: RowParameters): Pick<ViewParameters, 'stable' | 'update'> {
  if (stale === undefined) return { stable: stable ?? false, update: update ?? true }
  if (stable !== undefined || update !== undefined) {
    throw new ApiError('query_parse_error', '`stale` is incompatible with `stable` and `update`')
  }
  return { stable: true, update: stale === 'ok' ? false : 'lazy' }
}

function partitionOf(parameters: RowParameters, view: QueriedView): string | undefined {
  const partition = view.partition ?? parameters.partition
  if (partition === undefined) {
    if (!view.isPartitioned) return undefined
    throw new ApiError('query_parse_error', '`partition` parameter is mandatory for queries to this view.')
  }
  if (!view.isPartitioned) {
    throw new ApiError('query_parse_error', '`partition` parameter is not supported in this design doc')
  }
  return partition
}
