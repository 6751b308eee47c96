import type { Clock, Timer } from './clock.ts'

/** One node's view of a shared clock: `revoke` ends the timers of this node only. */
export class RevocableClock implements Clock {
  readonly #clock: Clock
  readonly #timers = new Set<Timer>()
  #revoked = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  now(): number {
    return this.#clock.now()
  }

  monotonic(): number {
    return this.#clock.monotonic()
  }

  setTimer(ms: number, callback: () => void): Timer {
    if (this.#revoked) return { cancel: () => {} }
    const timer = this.#clock.setTimer(ms, () => {
      this.#timers.delete(timer)
      callback()
    })
    this.#timers.add(timer)
    return {
      cancel: () => {
        this.#timers.delete(timer)
        timer.cancel()
      },
    }
  }

  setImmediate(callback: () => void): void {
    this.#clock.setImmediate(() => { if (!this.#revoked) callback() })
  }

  /** The number of timers of this node that are set. */
  get pendingTimers(): number {
    return this.#timers.size
  }

  revoke(): void {
    this.#revoked = true
    for (const timer of this.#timers) timer.cancel()
    this.#timers.clear()
  }
}
