import { sleep } from '@sectional/runtime'
import type { Clock } from '@sectional/runtime'

/**
 * Merges questions to the leader. At most one question is sent per interval, and each caller gets the answer to a
 * question that was sent after the call.
 */
export class AbsenceCheck {
  readonly #clock: Clock
  readonly #intervalMs: number
  readonly #question: () => Promise<boolean>
  readonly #stopping = new AbortController()
  #next: Promise<boolean> | null = null
  #current: Promise<unknown> = Promise.resolve()
  #lastAt = -Infinity

  constructor(clock: Clock, intervalMs: number, question: () => Promise<boolean>) {
    this.#clock = clock
    this.#intervalMs = intervalMs
    this.#question = question
  }

  /** Resolves to true when the leader answered the question. */
  ask(): Promise<boolean> {
    this.#next ??= this.#putNext(this.#current)
    return this.#next
  }

  stop(): void { this.#stopping.abort() }

  async #putNext(previous: Promise<unknown>): Promise<boolean> {
    await previous
    const pause = this.#lastAt + this.#intervalMs - this.#clock.monotonic()
    if (pause > 0) await sleep(this.#clock, pause, this.#stopping.signal)
    this.#current = this.#next ?? Promise.resolve()
    this.#next = null
    if (this.#stopping.signal.aborted) return false
    this.#lastAt = this.#clock.monotonic()
    return await this.#question()
  }
}
