/** Budget and cancellation of one call. */
export interface CallContext {
  /** Milliseconds that this call may take; then it rejects with `ReplicaError('timeout')`. */
  readonly timeoutMs: number
  /** Aborts the call (and at the far end, the work) early. */
  readonly signal?: AbortSignal
  /** The request id that logs on every node carry. */
  readonly requestId?: string
  /**
   * The history of the replica that the call is meant for (`ReplicaInfo.history`). When the replica has another
   * history, because it was rebuilt, the call does nothing and rejects with `other_history`. Absent: any history.
   */
  readonly history?: string
}
