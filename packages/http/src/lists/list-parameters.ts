/** Parameters of `_all_docs`, `_design_docs` and `_local_docs` (docs/reference/lists.md#parameters-of-lists). */
import { ApiError, type JsonObject } from '@sectional/core'
import type { Query } from '../request/query.ts'
import {
  boundedLimit, checkKeysWithRange, checkUngrouped, checkUnreduced, rowParameters, rowParametersOfQuery,
  type RowParameters,
} from './row-parameters.ts'

export interface ListParameters extends Pick<
  RowParameters,
  'start' | 'end' | 'inclusiveEnd' | 'descending' | 'skip' | 'limit' | 'includeDocs' | 'conflicts' | 'attachments'
  | 'encodingInfo' | 'updateSequence' | 'partition'
> {
  readonly keys: readonly unknown[] | null
}

/** Reads the parameters of a GET or POST. @throws ApiError like `rowParameters` */
export function listParameters(query: Query, body: JsonObject | null): Readonly<ListParameters> {
  return finish(rowParameters(query, body, 'body member'))
}

/** Reads the parameters of one of the `queries`. @throws ApiError like `rowParametersOfQuery` */
export function listQueryParameters(query: Query, member: unknown): Readonly<ListParameters> {
  return finish(rowParametersOfQuery(query, member))
}

/** Returns the parameters with a limit of rows that is at most `max`. @throws ApiError `query_parse_error` */
export function withLimit(parameters: ListParameters, max: number): ListParameters {
  return { ...parameters, limit: boundedLimit(parameters.limit, max) }
}

function finish(parameters: RowParameters): Readonly<ListParameters> {
  checkUnreduced(parameters)
  checkUngrouped(parameters)
  const { keys, startId, endId, reduce, group, groupLevel, stale, stable, update, sorted, ...rest } = parameters
  if (keys !== undefined) {
    if (!Array.isArray(keys)) throw new ApiError('bad_request', '`keys` parameter must be an array.')
    checkKeysWithRange(keys, parameters)
    return { ...rest, keys }
  }
  // Each key is a document id, so a bound by id is only used when the bound by key is missing.
  if (startId !== undefined) rest.start ??= { key: startId }
  if (endId !== undefined) rest.end ??= { key: endId }
  return { ...rest, keys: null }
}
