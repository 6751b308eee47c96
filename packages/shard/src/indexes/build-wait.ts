import type { CallContext, ReplicaCheckpoint } from '@sectional/core'
import { ReplicaError } from '@sectional/core'
import type { Clock } from '@sectional/runtime'
import type { IndexBuild } from './index-build.ts'

/** The number of calls that may wait for one index. Further ones are refused as `overloaded`. */
const buildWaitersMax = 10_000

/**
 * Waits until an index has reached a position, but no longer than `waitMs`.
 *
 * @throws ReplicaError `other_history` when the replica was replaced meanwhile, `timeout`, `cancelled`, `overloaded`,
 *   and the error with which the build ended
 */
export function waitForBuild(
  build: IndexBuild, { history, sequence }: ReplicaCheckpoint, waitMs: number, { timeoutMs, signal }: CallContext,
  clock: Clock,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (act: () => void) => (): void => {
      timer?.cancel()
      build.listeners.delete(look)
      signal?.removeEventListener('abort', cancel)
      act()
    }
    const fail = (code: 'cancelled' | 'other_history' | 'overloaded' | 'timeout', message: string): () => void =>
      settle(() => reject(new ReplicaError(code, message)))
    const cancel = fail('cancelled', 'the caller has cancelled the call')
    const look = (failure?: unknown): void => {
      const { content } = build
      if (failure !== undefined) settle(() => reject(failure))()
      else if (content.history !== history) fail('other_history', 'the replica has a new history')()
      else if (waitMs <= 0 || content.sequence >= sequence) settle(resolve)()
    }
    const timer = waitMs <= 0 ? undefined : clock.setTimer(
      Math.min(waitMs, timeoutMs),
      waitMs < timeoutMs ? settle(resolve) : fail('timeout', `the index was not built within ${timeoutMs} ms`),
    )
    if (build.listeners.size >= buildWaitersMax) {
      return fail('overloaded', `${buildWaitersMax} calls wait for the index already`)()
    }
    build.listeners.add(look)
    signal?.addEventListener('abort', cancel, { once: true })
    if (signal?.aborted) cancel()
    else look()
  })
}
