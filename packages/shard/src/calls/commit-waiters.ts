import { ReplicaError } from '@sectional/core'
import type { CallContext } from '@sectional/core'
import type { Clock } from '@sectional/runtime'

interface Waiter { readonly after: number; resolve(sequence: number): void; reject(error: ReplicaError): void }

/** The calls that wait for the next durable change of a shard. */
export class CommitWaiters {
  readonly #clock: Clock
  readonly #waiting = new Set<Waiter>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Resolves with the first committed sequence above `after`. */
  wait(after: number, { timeoutMs, signal }: CallContext): Promise<number> {
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        this.#waiting.delete(waiter)
        timer.cancel()
        signal?.removeEventListener('abort', aborted)
      }
      const waiter: Waiter = {
        after,
        resolve: sequence => { settle(); resolve(sequence) },
        reject: error => { settle(); reject(error) },
      }
      const aborted = (): void => waiter.reject(new ReplicaError('cancelled', 'the caller has cancelled the call'))
      const timer = this.#clock.setTimer(
        timeoutMs, () => waiter.reject(new ReplicaError('timeout', `nothing changed within ${timeoutMs} ms`)),
      )
      signal?.addEventListener('abort', aborted, { once: true })
      this.#waiting.add(waiter)
    })
  }

  committed(sequence: number): void {
    for (const waiter of this.#waiting) if (sequence > waiter.after) waiter.resolve(sequence)
  }

  refuse(refusal: ReplicaError): void {
    for (const waiter of this.#waiting) waiter.reject(refusal)
  }
}
