/** Selects the names that `_all_dbs` and `_dbs_info` return (docs/reference/server.md#get-_all_dbs). */
import { ApiError, compareUtf8 } from '@sectional/core'
import { nonNegativeInteger, strictBoolean, type Query } from '../request/query.ts'

/** @param names in ascending byte order */
export function selectNames(names: readonly string[], query: Query): readonly string[] {
  const descending = query.has('descending') && strictBoolean(query.get('descending'))
  const inclusiveEnd = !query.has('inclusive_end') || strictBoolean(query.get('inclusive_end'))
  const key = query.json('key')
  const keys = query.json('keys')
  const start = key ?? query.json('startkey') ?? query.json('start_key')
  const end = key ?? query.json('endkey') ?? query.json('end_key')
  const skip = query.has('skip') ? nonNegativeInteger(query.get('skip')) : 0
  const limit = query.has('limit') ? nonNegativeInteger(query.get('limit')) : Infinity
  const inRange = start === undefined && end === undefined ? names : names.filter(name => {
    const fromStart = start === undefined ? 0 : order(name, start) * (descending ? -1 : 1)
    const fromEnd = end === undefined ? -1 : order(name, end) * (descending ? -1 : 1)
    return fromStart >= 0 && (fromEnd < 0 || (fromEnd === 0 && inclusiveEnd))
  })
  const selected = keys === undefined ? inRange : namedKeys(inRange, keys)
  return (descending ? selected.toReversed() : selected).slice(skip, skip + limit)
}

function namedKeys(names: readonly string[], keys: unknown): readonly string[] {
  if (!Array.isArray(keys)) throw new ApiError('bad_request', '`keys` parameter must be an array.')
  const known = new Set(names)
  return keys.filter(name => known.has(name))
}

/**
 * Compares a name with a bound. Strings compare by their UTF-8 bytes; any other JSON value sorts before every string.
 */
function order(name: string, bound: unknown): number {
  return typeof bound === 'string' ? compareUtf8(name, bound) : 1
}
