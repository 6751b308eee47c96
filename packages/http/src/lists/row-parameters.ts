/**
 * Parameters that select rows of lists and views, from the query string and the body. Lists accept those that only
 * apply to views, too: clients of CouchDB expect their errors.
 */
import { ApiError, checkPartition, isJsonObject, parseFiniteJson, type JsonObject } from '@sectional/core'
import { nonNegativeInteger, strictBoolean, type Query } from '../request/query.ts'

/** When an index is updated: before it is read, not at all, or after it was read. */
export type IndexUpdate = true | false | 'lazy'

/** Values before their combination is checked. */
export interface RowParameters {
  keys?: unknown
  /** Any JSON value; absent means unbounded. */
  start?: { readonly key: unknown }
  end?: { readonly key: unknown }
  startId?: string
  endId?: string
  inclusiveEnd: boolean
  descending: boolean
  skip: number
  limit: number | null
  includeDocs: boolean
  conflicts: boolean
  /** Whether included documents contain the content of attachments, and how it is stored. */
  attachments: boolean
  encodingInfo: boolean
  updateSequence: boolean
  partition?: string
  reduce?: boolean
  group?: boolean
  groupLevel?: number
  stale?: 'ok' | 'update_after'
  stable?: boolean
  update?: IndexUpdate
  sorted: boolean
}

/** Parameters that must be numbers, not strings, in a request body. */
const integerParameters = new Set(['skip', 'limit', 'group_level'])
const jsonParameters = new Set(['key', 'keys', 'startkey', 'start_key', 'endkey', 'end_key'])

function defaults(): RowParameters {
  return {
    inclusiveEnd: true, descending: false, skip: 0, limit: null, includeDocs: false, conflicts: false,
    attachments: false, encodingInfo: false, updateSequence: false, sorted: true,
  }
}

/**
 * Reads the parameters of a GET or POST. The query string overrides the body, except that `keys` of the body take
 * precedence.
 *
 * @param keysName how the error calls `keys` of the body that are not an array; null: they are no error here
 * @throws ApiError `query_parse_error` for values of the wrong type, `invalid_json`, `illegal_partition`; `bad_request`
 * for `keys` of the body that are not an array
 */
export function rowParameters(
  query: Query, body: JsonObject | null, keysName: 'member' | 'body member' | null,
): RowParameters {
  const keysInBody = body?.['keys']
  if (keysName !== null && keysInBody !== undefined && !Array.isArray(keysInBody)) {
    throw new ApiError('bad_request', `\`keys\` ${keysName} must be an array.`)
  }
  const parameters = defaults()
  applyMembers(parameters, body)
  applyQuery(parameters, query)
  return keysInBody === undefined ? parameters : { ...parameters, keys: keysInBody }
}

/**
 * Reads the parameters of one of the `queries`, which override the query string. As in CouchDB, groups and several
 * keys of the query string have no effect. A single key is a range only.
 */
export function rowParametersOfQuery(query: Query, member: unknown): RowParameters {
  if (!isJsonObject(member)) throw new ApiError('bad_request', '`queries` must be an array of objects.')
  const parameters = defaults()
  applyQuery(parameters, query)
  delete parameters.keys
  delete parameters.group
  delete parameters.groupLevel
  applyMembers(parameters, member)
  const { keys, ...rest } = parameters
  if (keys !== undefined && !Array.isArray(keys)) return invalidKeys()
  return keys?.length === 1 ? rest : parameters
}

/** Returns the array `queries` of a body. @throws ApiError when it is missing */
export function rowQueries({ queries }: JsonObject): readonly unknown[] {
  if (queries === undefined) throw new ApiError('bad_request', 'POST body must include `queries` parameter.')
  if (!Array.isArray(queries)) throw new ApiError('bad_request', '`queries` member must be an array.')
  return queries
}

/** Returns the limit of rows; null: there is none. @throws ApiError `query_parse_error` for a limit above `max` */
export function boundedLimit(limit: number | null, max: number): number | null {
  if (limit === null) return max === Infinity ? null : max
  if (limit <= max) return limit
  throw new ApiError('query_parse_error', `Limit is too large, must not exceed ${max}`)
}

/** @throws ApiError `query_parse_error` */
export function invalidKeys(): never {
  throw new ApiError('query_parse_error', '`keys` must be an array of strings.')
}

/**
 * Checks that `keys` are not combined with a range, unless they are empty, or their only key is both start and end of
 * the range.
 *
 * @throws ApiError `query_parse_error`
 */
export function checkKeysWithRange(keys: readonly unknown[], { start, end }: RowParameters): void {
  const same = (one: { readonly key: unknown } | undefined): boolean =>
    one !== undefined && JSON.stringify(one.key) === JSON.stringify(keys[0])
  const hasRange = start !== undefined || end !== undefined
  if (!hasRange || keys.length === 0 || (keys.length === 1 && same(start) && same(end))) return
  throw new ApiError('query_parse_error', '`keys` is incompatible with `key`, `start_key` and `end_key`')
}

/**
 * Returns by how many elements of their keys rows are grouped; `exact`: by their whole keys; 0: not at all.
 *
 * @throws ApiError `query_parse_error` for a combination that has no meaning
 */
export function groupLevelOf({ group, groupLevel }: RowParameters): number | 'exact' {
  if (group === false && groupLevel !== undefined && groupLevel > 0) {
    throw new ApiError('query_parse_error', "Can't specify group=false and group_level>0 at the same time")
  }
  return groupLevel ?? (group === true ? 'exact' : 0)
}

/** @throws ApiError `query_parse_error` for parameters that ask for a reduction of rows that cannot be reduced */
export function checkUnreduced({ reduce }: RowParameters): void {
  if (reduce === true) throw new ApiError('query_parse_error', 'Reduce is invalid for map-only views.')
}

/** @throws ApiError `query_parse_error` for parameters that ask for groups of rows that are not reduced */
export function checkUngrouped(parameters: RowParameters): void {
  if (groupLevelOf(parameters) !== 0) {
    throw new ApiError('query_parse_error', 'Invalid use of grouping on a map view.')
  }
}

function applyQuery(parameters: RowParameters, query: Query): void {
  for (const [name, text] of query.entries()) {
    apply(parameters, name, jsonParameters.has(name) ? parseFiniteJson(text) : text)
  }
}

function applyMembers(parameters: RowParameters, body: JsonObject | null): void {
  if (body === null) return
  for (const [name, value] of Object.entries(body)) {
    if (integerParameters.has(name) && typeof value === 'string') {
      throw new ApiError('query_parse_error', `Invalid value for integer: ${JSON.stringify(value)}`)
    }
    apply(parameters, name, value)
  }
}

function apply(parameters: RowParameters, name: string, value: unknown): void {
  switch (name) {
    case 'key': parameters.start = parameters.end = { key: value }; break
    case 'keys': applyKeys(parameters, value); break
    case 'startkey': case 'start_key': parameters.start = { key: value }; break
    case 'endkey': case 'end_key': parameters.end = { key: value }; break
    case 'startkey_docid': case 'start_key_doc_id': parameters.startId = documentId(value, 'start_key_docid'); break
    case 'endkey_docid': case 'end_key_doc_id': parameters.endId = documentId(value, 'end_key_docid'); break
    case 'inclusive_end': parameters.inclusiveEnd = strictBoolean(value); break
    case 'descending': parameters.descending = strictBoolean(value); break
    case 'include_docs': parameters.includeDocs = strictBoolean(value); break
    case 'conflicts': parameters.conflicts = strictBoolean(value); break
    case 'attachments': parameters.attachments = strictBoolean(value); break
    case 'att_encoding_info': parameters.encodingInfo = strictBoolean(value); break
    case 'update_seq': parameters.updateSequence = strictBoolean(value); break
    case 'skip': parameters.skip = nonNegativeInteger(value); break
    case 'limit': parameters.limit = nonNegativeInteger(value); break
    case 'partition':
      parameters.partition = typeof value === 'string' ? value : JSON.stringify(value)
      checkPartition(parameters.partition)
      break
    default: applyViewParameter(parameters, name, value)
  }
}

/** A single key is a range, too, so that a parameter behind it can set another one. */
function applyKeys(parameters: RowParameters, keys: unknown): void {
  parameters.keys = keys
  if (Array.isArray(keys) && keys.length === 1) parameters.start = parameters.end = { key: keys[0] }
}

function applyViewParameter(parameters: RowParameters, name: string, value: unknown): void {
  switch (name) {
    case 'reduce': parameters.reduce = strictBoolean(value); break
    case 'group': parameters.group = strictBoolean(value); break
    case 'group_level': parameters.groupLevel = nonNegativeInteger(value); break
    case 'sorted': parameters.sorted = strictBoolean(value); break
    case 'stable': parameters.stable = oneOf(booleans, value, name); break
    case 'update': parameters.update = oneOf(updates, value, name); break
    case 'stale': parameters.stale = oneOf(staleness, value, name); break
    default: break
  }
}

const booleans = [true, false] as const
const updates = [true, false, 'lazy'] as const
const staleness = ['ok', 'update_after'] as const

/** Returns the choice that is equal to the value or to its text. */
function oneOf<Choice extends string | boolean>(choices: readonly Choice[], value: unknown, name: string): Choice {
  const found = choices.find(choice => value === choice || value === String(choice))
  if (found === undefined) throw new ApiError('query_parse_error', `Invalid value for \`${name}\`.`)
  return found
}

function documentId(value: unknown, name: string): string {
  if (typeof value !== 'string') throw new ApiError('query_parse_error', `\`${name}\` must be a string.`)
  if (!value.isWellFormed()) throw new ApiError('query_parse_error', `\`${name}\` must be valid UTF-8.`)
  return value
}
