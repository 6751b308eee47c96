/** Every way in which a call on a replica can fail as a whole. */
export const replicaErrorCodes = [
  'unreachable', // no link to the node, or it broke during the call: the outcome of a write is unknown
  'timeout', // no answer within the deadline: the outcome of a write is unknown
  'cancelled', // the caller's signal aborted the call
  'not_hosted', // that node has no such replica or index (not yet, or no longer), or the index is behind
  'other_history', // the replica has another history than the call named (`CallContext.history`): nothing was done
  'position_expired', // purges after the sequence from which the call reads are no longer recorded: read from 0
  'overloaded', // a bounded queue is full: nothing was done, try later
  'storage', // the disk failed or is full: nothing of this call was acknowledged
  'closed', // the replica or its node is shutting down
  'protocol', // the peer broke the protocol
  'missing_blob', // a blob that the call reads, or that its revisions name, is not on that node: nothing was done
  'damaged_blob', // the bytes of a blob on that node's disk differ from those that were written
  'compilation', // the source of a function of an index is not a function; the message has the position in it
  'exhausted', // a function of an index exceeded its limits of time, memory or size too often; the message names one
  'aborted', // a map function asked to end the build of its index; see `indexAborted`
  'unsupported', // the node cannot run the functions of the index
] as const

export type ReplicaErrorCode = (typeof replicaErrorCodes)[number]

const nothingDoneCodes: ReadonlySet<ReplicaErrorCode> = new Set(['not_hosted', 'overloaded', 'missing_blob'])

/** Why a call on a replica failed as a whole. */
export class ReplicaError extends Error {
  readonly code: ReplicaErrorCode
  /** True: the call wrote nothing and never will. False: the outcome of a write is unknown. */
  readonly nothingDone: boolean

  /** @param options `nothingDone` defaults to what `code` implies */
  constructor(
    code: ReplicaErrorCode, message: string, options?: { readonly cause?: unknown; readonly nothingDone?: boolean },
  ) {
    super(message, options)
    this.name = 'ReplicaError'
    this.code = code
    this.nothingDone = options?.nothingDone ?? nothingDoneCodes.has(code)
  }
}

/** Returns the failure of a build that a map function ended. @param error and reason as the function named them */
export function indexAborted(error: string, reason: string): ReplicaError {
  return new ReplicaError('aborted', `${error}: ${reason}`)
}

/** Returns the error and the reason of `indexAborted`. */
export function abortReason({ message }: ReplicaError): { readonly error: string; readonly reason: string } {
  const [error = ''] = message.split(': ', 1)
  return { error, reason: message.slice(error.length + 2) }
}
