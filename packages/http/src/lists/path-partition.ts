import { ApiError, checkPartition } from '@sectional/core'
import type { RequestContext } from '../request/request-context.ts'

/**
 * Returns the partition that the path of a request names as its first parameter.
 *
 * @throws ApiError `bad_request` when the database has no partitions, or the query string names another partition;
 * `illegal_partition`
 */
export function pathPartition(request: RequestContext): string {
  const partition = request.params[0]!
  if (!request.database.partitioned) throw new ApiError('bad_request', 'database is not partitioned')
  checkPartition(partition)
  const inQuery = request.query.get('partition')
  if (inQuery !== undefined && inQuery !== partition) {
    throw new ApiError('bad_request', 'Conflicting value for `partition` in query string')
  }
  return partition
}
