/** `_partition/{partition}/...`: paths that are answered like those without the partition. */
import { ApiError } from '@sectional/core'
import { pathPartition } from '../lists/path-partition.ts'
import type { Handler } from '../pipeline/resource.ts'

/**
 * Returns the handler of indexes and of the functions of design documents. The query of the request gets the parameter
 * `partition`.
 *
 * @param again dispatches the request without the partition in its path
 */
export function createPartitionPath(again: Handler): Handler {
  return (request, services) => {
    const partition = pathPartition(request)
    const [database, , , ...rest] = request.segments
    request.enterPartition([database!, ...rest], partition)
    return again(request, services)
  }
}

export const refusePartitionedPath: Handler = ({ database }) => {
  throw database.partitioned ? new ApiError('missing') : new ApiError('bad_request', 'database is not partitioned')
}
