import type { Clock, Timer } from './clock.ts'

interface PendingTimer { readonly due: number; readonly order: number; readonly callback: () => void }

/**
 * A clock that moves only by `advance`. Timers that are due at the same time run in the order in which they were set.
 */
export class ManualClock implements Clock {
  readonly #epochMs: number
  readonly #timers = new Set<PendingTimer>()
  #elapsedMs = 0
  #order = 0
  #revoked = false

  /** @param epochMs the initial value of `now`: milliseconds since 1970 */
  constructor(epochMs = Date.UTC(2025, 0, 1)) {
    this.#epochMs = epochMs
  }

  now(): number {
    return Math.floor(this.#epochMs + this.#elapsedMs)
  }

  monotonic(): number {
    return this.#elapsedMs
  }

  setTimer(ms: number, callback: () => void): Timer {
    const timer: PendingTimer = { due: this.#elapsedMs + Math.max(0, ms), order: this.#order++, callback }
    if (!this.#revoked) this.#timers.add(timer)
    return { cancel: () => { this.#timers.delete(timer) } }
  }

  /** Runs the callback in a macrotask, without any `advance`. */
  setImmediate(callback: () => void): void {
    setImmediate(() => { if (!this.#revoked) callback() })
  }

  /** The number of timers that are set; 0 after a clean stop. */
  get pendingTimers(): number {
    return this.#timers.size
  }

  /**
   * Advances the time by `ms` and runs the due timers in order. Before the first timer and after each one it lets the
   * promises and immediates that are ready run, so that timers which they set are included.
   */
  async advance(ms: number): Promise<void> {
    const end = this.#elapsedMs + ms
    await turn()
    for (let next = this.#next(end); next !== undefined; next = this.#next(end)) {
      this.#timers.delete(next)
      this.#elapsedMs = Math.max(this.#elapsedMs, next.due)
      next.callback()
      await turn()
    }
    this.#elapsedMs = Math.max(this.#elapsedMs, end)
    await turn()
  }

  /** Cancels all timers; timers that are set later never run. */
  revoke(): void {
    this.#revoked = true
    this.#timers.clear()
  }

  #next(end: number): PendingTimer | undefined {
    let first: PendingTimer | undefined
    for (const timer of this.#timers) {
      if (timer.due > end) continue
      if (first === undefined || timer.due < first.due || (timer.due === first.due && timer.order < first.order)) {
        first = timer
      }
    }
    return first
  }
}

/** Resolves after one turn of the event loop, when everything that is ready now has run. */
function turn(): Promise<void> {
  return new Promise(resolve => { setImmediate(resolve) })
}
