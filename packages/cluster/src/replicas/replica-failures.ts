import { abortReason, ApiError, ReplicaError } from '@sectional/core'
import type { ReplicaErrorCode } from '@sectional/core'

/**
 * Seconds after which a client should retry when a cluster is overloaded, or when the data is on a node that is away.
 */
const comeBack = { 'Retry-After': '1' }

/**
 * Returns the failure of a call to a replica. Any error that is not a `ReplicaError` is a defect of that replica and is
 * kept as the cause.
 */
export function asReplicaError(error: unknown): ReplicaError {
  if (error instanceof ReplicaError) return error
  return new ReplicaError('protocol', error instanceof Error ? error.message : String(error), { cause: error })
}

/** Codes that only mean that the replica is absent. */
const absent: ReadonlySet<ReplicaErrorCode> = new Set<ReplicaErrorCode>(['unreachable', 'not_hosted', 'closed'])

/** Codes that only mean that the replica did not answer in time. */
const late: ReadonlySet<ReplicaErrorCode> = new Set<ReplicaErrorCode>(['timeout', 'cancelled', 'overloaded'])

function lacksContent({ code }: ReplicaError): boolean {
  return code === 'missing_blob' || code === 'damaged_blob'
}

/** Returns the error for clients when this node's feeds wait on the largest allowed number of replicas. */
export function feedsOverloaded(cause?: ReplicaError): ApiError {
  const reason = 'The changes feeds of this node follow the largest allowed number of shards; '
    + 'use another node, or try again shortly.'
  return new ApiError('service_unavailable', reason, { headers: comeBack, cause })
}

/**
 * Returns the error for clients when no replica of a shard carried out the operation. Its cause is always an error of a
 * replica.
 */
export function shardFailure(errors: readonly ReplicaError[]): ApiError {
  const answers = errors.filter(error => !absent.has(error.code))
  const cause = answers[0] ?? errors[0] ?? new ReplicaError('unreachable', 'no replica of the shard can be reached')
  const all = (code: ReplicaErrorCode) => answers.length > 0 && answers.every(error => error.code === code)
  if (all('overloaded')) return new ApiError('service_unavailable', undefined, { headers: comeBack, cause })
  // Every replica compiles the same source, so one answer suffices.
  const broken = answers.find(error => error.code === 'compilation')
  if (broken !== undefined) return new ApiError('compilation_error', broken.message, { cause: broken })
  const aborted = answers.find(error => error.code === 'aborted')
  if (aborted !== undefined) {
    const { error, reason } = abortReason(aborted)
    return new ApiError({ status: 500, error }, reason, { cause: aborted })
  }
  const exhausted = answers.find(error => error.code === 'exhausted')
  if (exhausted !== undefined) return new ApiError('timeout', exhausted.message, { cause: exhausted })
  if (all('unsupported')) return new ApiError('not_implemented', cause.message, { cause })
  if (answers.some(error => error.code === 'storage')) {
    const reason = 'No replica of the shard could use its disk; free space or look at the log of the nodes.'
    return new ApiError('insufficient_storage', reason, { cause })
  }
  if (answers.some(lacksContent)) {
    // A replica that does not answer may have the content; this node knows of it from the list of errors or from a
    // cause.
    const lost = errors.every(error => lacksContent(error) && !(error.cause instanceof ReplicaError))
    if (lost) {
      const reason = 'No replica of the shard has the complete content of an attachment.'
      return new ApiError('internal_server_error', reason, { cause })
    }
    const reason = 'No replica of the shard that answers has the complete content of an attachment. Try again.'
    return new ApiError('service_unavailable', reason, { headers: comeBack, cause })
  }
  // This node is cut off from the replicas. Another node may answer, and this one may when its links are open again.
  if (answers.length === 0) {
    return new ApiError('service_unavailable', 'No DB shards could be opened.', { headers: comeBack, cause })
  }
  if (answers.every(({ code }) => late.has(code))) return new ApiError('timeout', undefined, { cause })
  return new ApiError('internal_server_error', 'No DB shards could be opened.', { cause })
}
