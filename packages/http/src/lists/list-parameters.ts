/**
 * Parameters of `_all_docs`, `_design_docs` and `_local_docs`, from the query string and the body
 * (docs/reference/lists.md#parameters-of-lists).
 */
import { ApiError, isJsonObject, parseJson, type JsonObject } from '@sectional/core'
import { nonNegativeInteger, strictBoolean, type Query } from '../request/query.ts'

export interface ListParameters {
  readonly keys: readonly unknown[] | null
  /** Any JSON value; absent means unbounded. */
  readonly start?: { readonly key: unknown }
  readonly end?: { readonly key: unknown }
  readonly inclusiveEnd: boolean
  readonly descending: boolean
  readonly skip: number
  readonly limit: number | null
  readonly includeDocs: boolean
  readonly conflicts: boolean
  /** Whether included documents contain the content of attachments, and how it is stored. */
  readonly attachments: boolean
  readonly encodingInfo: boolean
  readonly updateSequence: boolean
  readonly partition?: string
}

/** Parameter values before their combination is checked. */
interface Draft {
  keys?: unknown
  start?: { readonly key: unknown }
  end?: { readonly key: unknown }
  /** Bounds by document id. They are used only when the bound by key is missing, because each key is a document id. */
  startId?: string
  endId?: string
  inclusiveEnd: boolean
  descending: boolean
  skip: number
  limit: number | null
  includeDocs: boolean
  conflicts: boolean
  attachments: boolean
  encodingInfo: boolean
  updateSequence: boolean
  partition?: string
}

/** Parameters that must be numbers, not strings, in a request body. */
const integerParameters = new Set(['skip', 'limit', 'group_level'])
const jsonParameters = new Set(['key', 'keys', 'startkey', 'start_key', 'endkey', 'end_key'])

function emptyDraft(): Draft {
  return {
    inclusiveEnd: true, descending: false, skip: 0, limit: null, includeDocs: false, conflicts: false,
    attachments: false, encodingInfo: false, updateSequence: false,
  }
}

/**
 * Reads the parameters of a GET or POST. The query string overrides the body, except that `keys` of the body take
 * precedence.
 */
export function listParameters(query: Query, body: JsonObject | null): ListParameters {
  const draft = emptyDraft()
  applyMembers(draft, body)
  applyQuery(draft, query)
  const keysInBody = body?.['keys']
  if (keysInBody !== undefined) draft.keys = keysInBody
  return finish(draft, keysInBody === undefined ? 'parameter' : 'body member')
}

/** Reads the parameters of one of the `queries`, which override the query string. A single key becomes a range. */
export function listQueryParameters(query: Query, member: unknown): ListParameters {
  if (!isJsonObject(member)) throw new ApiError('bad_request', '`queries` must be an array of objects.')
  const draft = emptyDraft()
  applyQuery(draft, query)
  applyMembers(draft, member)
  const { keys } = draft
  if (keys !== undefined && !Array.isArray(keys)) {
    throw new ApiError('query_parse_error', '`keys` must be an array of strings.')
  }
  if (keys?.length !== 1) return finish(draft, 'body member')
  delete draft.keys
  apply(draft, 'key', keys[0])
  return finish(draft, 'body member')
}

/** Returns the array `queries` of a body. @throws ApiError when it is missing */
export function listQueries({ queries }: JsonObject): readonly unknown[] {
  if (queries === undefined) throw new ApiError('bad_request', 'POST body must include `queries` parameter.')
  if (!Array.isArray(queries)) throw new ApiError('bad_request', '`queries` member must be an array.')
  return queries
}

function applyQuery(draft: Draft, query: Query): void {
  for (const [name, text] of query.entries()) apply(draft, name, jsonParameters.has(name) ? parseJson(text) : text)
}

function applyMembers(draft: Draft, body: JsonObject | null): void {
  if (body === null) return
  for (const [name, value] of Object.entries(body)) {
    if (integerParameters.has(name) && typeof value === 'string') {
      throw new ApiError('query_parse_error', `Invalid value for integer: ${JSON.stringify(value)}`)
    }
    apply(draft, name, value)
  }
}

function apply(draft: Draft, name: string, value: unknown): void {
  switch (name) {
    case 'key': draft.start = draft.end = { key: value }; break
    case 'keys': draft.keys = value; break
    case 'startkey': case 'start_key': draft.start = { key: value }; break
    case 'endkey': case 'end_key': draft.end = { key: value }; break
    case 'startkey_docid': case 'start_key_doc_id': draft.startId = documentId(value, 'start_key_docid'); break
    case 'endkey_docid': case 'end_key_doc_id': draft.endId = documentId(value, 'end_key_docid'); break
    case 'inclusive_end': draft.inclusiveEnd = strictBoolean(value); break
    case 'descending': draft.descending = strictBoolean(value); break
    case 'include_docs': draft.includeDocs = strictBoolean(value); break
    case 'conflicts': draft.conflicts = strictBoolean(value); break
    case 'attachments': draft.attachments = strictBoolean(value); break
    case 'att_encoding_info': draft.encodingInfo = strictBoolean(value); break
    case 'update_seq': draft.updateSequence = strictBoolean(value); break
    case 'skip': draft.skip = nonNegativeInteger(value); break
    case 'limit': draft.limit = nonNegativeInteger(value); break
    case 'partition': draft.partition = typeof value === 'string' ? value : JSON.stringify(value); break
    default: checkViewParameter(name, value)
  }
}

function documentId(value: unknown, name: string): string {
  if (typeof value !== 'string') throw new ApiError('query_parse_error', `\`${name}\` must be a string.`)
  return value
}

/**
 * Checks parameters that apply to views only. They have no effect on lists, but clients of CouchDB expect their errors.
 */
function checkViewParameter(name: string, value: unknown): void {
  switch (name) {
    case 'reduce':
      if (strictBoolean(value)) throw new ApiError('query_parse_error', 'Reduce is invalid for map-only views.')
      break
    case 'group': case 'group_level':
      if (name === 'group' ? strictBoolean(value) : nonNegativeInteger(value) > 0) {
        throw new ApiError('query_parse_error', 'Invalid use of grouping on a map view.')
      }
      break
    case 'stable': case 'sorted':
      strictBoolean(value)
      break
    case 'update':
      if (![true, false, 'true', 'false', 'lazy'].includes(value as string | boolean)) {
        throw new ApiError('query_parse_error', 'Invalid value for `update`.')
      }
      break
    case 'stale':
      if (value !== 'ok' && value !== 'update_after') {
        throw new ApiError('query_parse_error', 'Invalid value for `stale`.')
      }
      break
    default: break
  }
}

function finish(draft: Draft, place: 'parameter' | 'body member'): ListParameters {
  const { keys, startId, endId, ...rest } = draft
  if (keys !== undefined && !Array.isArray(keys)) {
    throw new ApiError('bad_request', `\`keys\` ${place} must be an array.`)
  }
  if (keys !== undefined && (draft.start !== undefined || draft.end !== undefined) && !isTheSame(keys, draft)) {
    throw new ApiError('query_parse_error', '`keys` is incompatible with `key`, `start_key` and `end_key`')
  }
  if (keys === undefined) {
    if (startId !== undefined) rest.start ??= { key: startId }
    if (endId !== undefined) rest.end ??= { key: endId }
  }
  return { ...rest, keys: (keys as readonly unknown[] | undefined) ?? null }
}

/**
 * Returns whether `keys` can be combined with a range: it is empty, or its only key is both start and end of the range.
 */
function isTheSame(keys: readonly unknown[], { start, end }: Draft): boolean {
  const same = (one: { readonly key: unknown } | undefined): boolean =>
    one !== undefined && JSON.stringify(one.key) === JSON.stringify(keys[0])
  return keys.length === 0 || (keys.length === 1 && same(start) && same(end))
}
