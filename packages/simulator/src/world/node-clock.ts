import type { Clock, Timer } from '@sectional/runtime'
import type { EventQueue } from './event-queue.ts'

/**
 * The clock of one simulated machine. It drifts, and its wall clock can jump. While the process is paused no timer
 * fires; timers that became due fire in order when the process continues.
 */
export class NodeClock implements Clock {
  readonly #queue: EventQueue
  readonly #label: string
  readonly #rate: number
  readonly #deferred: (() => void)[] = []
  #offsetMs: number
  /** True time at which the pause began that goes on; undefined when the process runs. */
  #pausedSince: number | undefined
  /** Milliseconds of all pauses that have ended. */
  #pausedMs = 0

  /** @param rate seconds that this clock counts in one second of true time */
  constructor(queue: EventQueue, name: string, rate: number, offsetMs: number) {
    this.#queue = queue
    this.#label = `timer ${name}`
    this.#rate = rate
    this.#offsetMs = offsetMs
  }

  now(): number {
    return Math.floor(this.#queue.now() - this.#queue.monotonic() + this.monotonic() + this.#offsetMs)
  }

  monotonic(): number {
    return this.#queue.monotonic() * this.#rate
  }

  setTimer(ms: number, callback: () => void): Timer {
    let cancelled = false
    const run = (): void => {
      if (cancelled) return
      if (this.#pausedSince !== undefined) this.#deferred.push(run)
      else callback()
    }
    const timer = this.#queue.schedule(ms / this.#rate, this.#label, run)
    return { cancel: () => { cancelled = true; timer.cancel() } }
  }

  readonly setImmediate = (callback: () => void): void => {
    this.setTimer(0, callback)
  }

  /** Moves the wall clock. Monotonic time does not change. */
  jump(ms: number): void {
    this.#offsetMs += ms
  }

  /** True time in milliseconds without the pauses. */
  get awakeMs(): number {
    return (this.#pausedSince ?? this.#queue.monotonic()) - this.#pausedMs
  }

  /** Must not be called during a pause. */
  pause(): void {
    this.#pausedSince = this.#queue.monotonic()
  }

  continue(): void {
    if (this.#pausedSince !== undefined) this.#pausedMs += this.#queue.monotonic() - this.#pausedSince
    this.#pausedSince = undefined
    for (const run of this.#deferred.splice(0)) this.#queue.schedule(0, this.#label, run)
  }
}
