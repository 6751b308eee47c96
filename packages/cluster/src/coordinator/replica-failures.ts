import { ApiError, ReplicaError } from '@sectional/core'
import type { ReplicaErrorCode } from '@sectional/core'

/** Seconds after which a client of an overloaded cluster is asked to come back. */
const retryAfterSeconds = 1

/** The failure of a call on a replica. Anything but a `ReplicaError` is a defect of that replica, and kept as the cause. */
export function asReplicaError(error: unknown): ReplicaError {
  if (error instanceof ReplicaError) return error
  return new ReplicaError('protocol', error instanceof Error ? error.message : String(error), { cause: error })
}

/** Codes that say nothing about a replica but that it is not there. */
const absent: ReadonlySet<ReplicaErrorCode> = new Set<ReplicaErrorCode>(['unreachable', 'not_hosted', 'closed'])

/** What a client is told when no replica of a shard did what was asked. */
export function shardFailure(errors: readonly ReplicaError[]): ApiError {
  const answers = errors.filter(error => !absent.has(error.code))
  const cause = answers[0] ?? errors[0]
  const all = (code: ReplicaErrorCode) => answers.length > 0 && answers.every(error => error.code === code)
  if (all('overloaded')) return new ApiError('service_unavailable', undefined, { headers: { 'Retry-After': String(retryAfterSeconds) }, cause })
  if (answers.some(error => error.code === 'storage')) {
    return new ApiError('insufficient_storage', 'No replica of the shard could use its disk; free space or look at the log of the nodes.', { cause })
  }
  // A replica that has just gone may have had it, and this node may not know yet that the database is deleted.
  const gone = errors.some(error => error.code === 'not_hosted')
  if (!gone && answers.some(error => error.code === 'missing_blob' || error.code === 'damaged_blob')) {
    return new ApiError('internal_server_error', 'The content of an attachment is whole on no reachable replica of the shard.', { cause })
  }
  if (all('timeout') || all('cancelled')) return new ApiError('timeout', undefined, { cause })
  return new ApiError('internal_server_error', 'No DB shards could be opened.', { cause })
}
