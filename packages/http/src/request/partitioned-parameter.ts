/** The parameter `partitioned` of the creation of a database (docs/reference/databases.md#put-db). */
import { ApiError } from '@sectional/core'
import type { Query } from './query.ts'
import { isSystemName } from './system-names.ts'

/** @throws ApiError `bad_request` for a system database, and for a value that is neither true nor false */
export function readPartitioned(name: string, query: Query): boolean {
  const text = query.get('partitioned')
  if (text === undefined || text === 'false') return false
  if (text !== 'true') throw new ApiError('bad_request', 'Invalid `partitioned` parameter')
  if (isSystemName(name)) throw new ApiError('bad_request', 'Cannot partition a system database')
  return true
}
