import type { Clock } from '@sectional/runtime'

/**
 * Callers that wait, each with a deadline, for a condition. The conditions are evaluated only when `check` is called.
 */
export class Waiters {
  readonly #clock: Clock
  readonly #waiting = new Set<{ readonly met: () => boolean; readonly settle: (met: boolean) => void }>()
  #stopped = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Resolves to true once `met()` is true, and to false after `timeoutMs` or `stop`. */
  wait(met: () => boolean, timeoutMs: number): Promise<boolean> {
    if (met()) return Promise.resolve(true)
    if (this.#stopped || timeoutMs <= 0) return Promise.resolve(false)
    return new Promise(resolve => {
      const waiter = {
        met, settle: (result: boolean) => { timer.cancel(); this.#waiting.delete(waiter); resolve(result) },
      }
      const timer = this.#clock.setTimer(timeoutMs, () => waiter.settle(false))
      this.#waiting.add(waiter)
    })
  }

  check(): void {
    for (const waiter of [...this.#waiting]) if (waiter.met()) waiter.settle(true)
  }

  stop(): void {
    this.#stopped = true
    for (const waiter of [...this.#waiting]) waiter.settle(false)
  }
}
