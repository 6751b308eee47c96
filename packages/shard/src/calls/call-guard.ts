import type { CallContext } from '@sectional/core'
import { ReplicaError } from '@sectional/core'
import type { Clock } from '@sectional/runtime'
import { StorageError } from '@sectional/runtime'
import { DamagedRecordError } from '../records/damaged-record.ts'

/** @throws ReplicaError when the caller has cancelled the call or its deadline has passed */
export function checkCall(context: CallContext): void {
  if (context.signal?.aborted) throw cancelled()
  if (context.timeoutMs <= 0) throw timedOut(context)
}

/**
 * Settles like `work`, unless the deadline passes or the signal aborts first. The work continues in that case: a write
 * may still become durable, as the contract says for `timeout`.
 */
export function withinDeadline<T>(clock: Clock, context: CallContext, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const { signal } = context
    const settle = (): void => {
      timer.cancel()
      signal?.removeEventListener('abort', onAbort)
    }
    const onAbort = (): void => {
      settle()
      reject(cancelled())
    }
    const timer = clock.setTimer(context.timeoutMs, () => {
      settle()
      reject(timedOut(context))
    })
    signal?.addEventListener('abort', onAbort, { once: true })
    work.then(value => {
      settle()
      resolve(value)
    }, (error: unknown) => {
      settle()
      reject(toReplicaError(error))
    })
  })
}

function cancelled(): ReplicaError {
  return new ReplicaError('cancelled', 'the caller has cancelled the call')
}

function timedOut(context: CallContext): ReplicaError {
  return new ReplicaError('timeout', `the replica did not finish within ${context.timeoutMs} ms`)
}

/** Returns the damaged record that caused an error; undefined when the cause is another one. */
export function damageIn(error: unknown): DamagedRecordError | undefined {
  const cause = error instanceof ReplicaError ? error.cause : error
  return cause instanceof DamagedRecordError ? cause : undefined
}

/** Returns the error of the store that its files are damaged, which caused an error; undefined when another one did. */
export function corruptionIn(error: unknown): StorageError | undefined {
  const cause = error instanceof ReplicaError ? error.cause : error
  return cause instanceof StorageError && cause.code === 'corrupt' ? cause : undefined
}

/** Converts the error of a call that staged nothing: whatever its code is, nothing was written. */
export function withNothingDone(error: unknown): unknown {
  const failure = toReplicaError(error)
  if (!(failure instanceof ReplicaError) || failure.nothingDone) return failure
  return new ReplicaError(failure.code, failure.message, { cause: failure.cause, nothingDone: true })
}

/** Converts storage errors into the errors of the contract. Other errors are defects and are returned unchanged. */
export function toReplicaError(error: unknown): unknown {
  if (error instanceof StorageError) {
    const code = error.code === 'overloaded' || error.code === 'closed' ? error.code : 'storage'
    return new ReplicaError(code, error.message, { cause: error })
  }
  if (error instanceof DamagedRecordError) return new ReplicaError('storage', error.message, { cause: error })
  return error
}
