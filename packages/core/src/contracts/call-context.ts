/** Budget and cancellation of one call. */
export interface CallContext {
  /** Milliseconds this call may take; afterwards it rejects with `ReplicaError('timeout')`. */
  readonly timeoutMs: number
  /** Aborts the call (and at the far end, the work) early. */
  readonly signal?: AbortSignal
  /** The request id that logs on every node carry. */
  readonly requestId?: string
  /**
   * The life of the replica that the call is meant for (`ReplicaInfo.history`). When the replica is in another life by
   * then, the call does nothing and rejects with `other_history`. Absent: any life.
   */
  readonly history?: string
}
