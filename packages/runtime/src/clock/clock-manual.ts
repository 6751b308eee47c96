import type { Clock, Timer } from './clock.ts'

interface PendingTimer { readonly due: number; readonly order: number; readonly callback: () => void }

/**
 * A clock that stands still until it is advanced. Timers due at the same instant run in the order in which they were
 * set.
 */
export class ManualClock implements Clock {
  readonly #epochMs: number
  readonly #timers = new Set<PendingTimer>()
  #elapsedMs = 0
  #order = 0
  #revoked = false

  /** @param epochMs what `now` says at first: milliseconds since 1970 */
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

  /** Runs in a macrotask of its own, without any `advance`. */
  setImmediate(callback: () => void): void {
    setImmediate(() => { if (!this.#revoked) callback() })
  }

  /** How many timers are set: 0 is what a clean stop leaves behind. */
  get pendingTimers(): number {
    return this.#timers.size
  }

  /**
   * Goes on by `ms`, running what falls due in order. After each timer (and before the first) the promises
   * and immediates that are ready are given a turn, so that what they set is seen.
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

  /** No timer runs any more, set before or after. */
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

/** One turn of the event loop: everything that is ready now has run when it resolves. */
function turn(): Promise<void> {
  return new Promise(resolve => { setImmediate(resolve) })
}
