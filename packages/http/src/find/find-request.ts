/** The bodies of `_find` and `_explain`. */
import {
  ApiError, checkPartition, designPrefix, parseFieldPaths, type FieldPath, type JsonObject, type Selector,
} from '@sectional/core'
import {
  booleanOption, countOption, quorumOption, requireKnownMembers, requireMember, shown,
} from './option-values.ts'
import { readSelector, withSelectorErrors } from './selector-option.ts'
import { parseSortFields, type SortField } from './sort-fields.ts'

export interface FindRequest {
  readonly selector: Selector
  /** Name of a design document without `_design/`, and perhaps the name of an index; empty: none was asked for. */
  readonly useIndex: readonly string[]
  /** Empty: from the start. */
  readonly bookmark: string
  readonly limit: number
  readonly skip: number
  readonly sort: readonly SortField[]
  /** Names of the fields of the result; empty: whole documents. */
  readonly fields: readonly string[]
  readonly paths: readonly FieldPath[]
  readonly partition: string | undefined
  readonly r: number
  readonly conflicts: boolean
  readonly stale: 'ok' | false
  readonly update: boolean
  readonly stable: boolean
  readonly executionStats: boolean
  readonly allowFallback: boolean
  /** Return the number of matches instead of the documents. */
  readonly count: boolean
  /** Sort the matches in memory when no index has the order of `sort`. */
  readonly sortInMemory: boolean
  /** Add what the planner has considered and would recommend. */
  readonly advice: boolean
}

const members = new Set([
  'selector', 'use_index', 'bookmark', 'limit', 'skip', 'sort', 'fields', 'partition', 'r', 'conflicts', 'stale',
  'update', 'stable', 'execution_stats', 'allow_fallback', 'count', 'sort_in_memory', 'advice',
])

/** What a request without a member means, and limits. */
export interface FindDefaults {
  /** The largest number of conditions of the selector. */
  readonly conditionsMax: number
  readonly limit: number
  /** The partition that the path names. */
  readonly partition: string | undefined
  /** Whether the database has partitions. */
  readonly partitioned: boolean
}

/** @throws ApiError 400 with the error of the first member that is not valid */
export function parseFindRequest(body: JsonObject, defaults: FindDefaults): FindRequest {
  const selector = readSelector(requireMember(body, 'selector'), defaults.conditionsMax)
  const useIndex = parseUseIndex(body['use_index'])
  const bookmark = parseBookmarkText(body['bookmark'])
  const limit = countOption(body['limit'], defaults.limit)
  const skip = countOption(body['skip'], 0)
  const sort = body['sort'] === undefined ? [] : parseSortFields(body['sort'])
  const fields = parseFields(body['fields'])
  const parsed = {
    selector, useIndex, bookmark, limit, skip, sort, fields,
    paths: withSelectorErrors(() => parseFieldPaths(fields)),
    partition: parsePartition(body['partition'], defaults),
    r: quorumOption(body['r']) ?? 1,
    conflicts: booleanOption(body['conflicts'], false),
    stale: parseStale(body['stale']),
    update: booleanOption(body['update'], true),
    stable: booleanOption(body['stable'], false),
    executionStats: booleanOption(body['execution_stats'], false),
    allowFallback: booleanOption(body['allow_fallback'], true),
    count: booleanOption(body['count'], false),
    sortInMemory: booleanOption(body['sort_in_memory'], false),
    advice: booleanOption(body['advice'], false),
  }
  requireKnownMembers(body, members)
  return parsed
}

/** Accepts `ddoc`, `ddoc/name`, `[ddoc]` and `[ddoc, name]`, each with or without `_design/`. */
function parseUseIndex(value: unknown): readonly string[] {
  if (value === undefined || value === null || (Array.isArray(value) && value.length === 0)) return []
  const text = typeof value === 'string' ? splitIndexName(value) : []
  const parts: readonly unknown[] = Array.isArray(value) ? value : text
  const [ddoc, name, ...more] = parts
  const isName = (part: unknown): part is string => typeof part === 'string' && part !== ''
  if (!isName(ddoc) || (name !== undefined && !isName(name)) || more.length > 0) {
    throw new ApiError('invalid_index_name', `Invalid index name: ${shown(value)}`)
  }
  const bare = ddoc.startsWith(designPrefix) ? ddoc.slice(designPrefix.length) : ddoc
  return name === undefined ? [bare] : [bare, name]
}

function splitIndexName(value: string): readonly string[] {
  return (value.startsWith(designPrefix) ? value.slice(designPrefix.length) : value).split('/')
}

/** The bookmark of an empty page; it begins at the start, like no bookmark. */
export const noBookmark = 'nil'

function parseBookmarkText(value: unknown): string {
  if (value === undefined || value === null || value === noBookmark) return ''
  if (typeof value !== 'string') throw new ApiError('invalid_bookmark', `Invalid bookmark value: ${shown(value)}`)
  return value
}

function parseFields(value: unknown): readonly string[] {
  if (value === undefined) return []
  if (!Array.isArray(value)) {
    throw new ApiError('invalid_fields', `Fields must be an array of strings, not: ${shown(value)}`)
  }
  return value.map(field => {
    if (typeof field !== 'string') {
      throw new ApiError('invalid_field', `Invalid JSON for field spec: ${shown(field)}`)
    }
    return field
  })
}

function parsePartition(value: unknown, { partition, partitioned }: FindDefaults): string | undefined {
  if (value === undefined || value === '') return partition
  if (typeof value !== 'string') throw new ApiError('illegal_partition', 'Partition must be a string')
  checkPartition(value)
  if (!partitioned) throw new ApiError('bad_request', 'database is not partitioned')
  if (partition !== undefined && partition !== value) {
    throw new ApiError('bad_request', 'Conflicting value for `partition` in the path and the body')
  }
  return value
}

function parseStale(value: unknown): 'ok' | false {
  if (value === undefined || value === false) return false
  if (value === 'ok') return value
  throw new ApiError('bad_request', `Value for stale is ${shown(value)}, should be "ok" or false`)
}
