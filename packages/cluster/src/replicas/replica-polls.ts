import type { Clock, Timer } from '@sectional/runtime'
import type { CoordinatorOptions } from '../contracts/coordinator-options.ts'

type PollOptions = Pick<CoordinatorOptions, 'pollIntervalMs' | 'pollRoundMs' | 'pollsPerRound'>

interface Turn { readonly due: number; readonly resolve: () => void }

/**
 * Paces the polls of replicas on which no call may wait, because their link carries the largest allowed number of
 * waiting calls. All feeds of the node together send at most `pollsPerRound` polls per `pollRoundMs`, and each replica
 * is polled at most about once per `pollIntervalMs`.
 */
export class ReplicaPolls {
  readonly #clock: Clock
  readonly #options: PollOptions
  /** In the order in which they are due. */
  readonly #waiting = new Set<Turn>()
  #timer: Timer | undefined
  #roundAt = -Infinity

  constructor(clock: Clock, options: PollOptions) {
    this.#clock = clock
    this.#options = options
  }

  /** Resolves when the caller may poll its replica once, or at once when the signal aborts. */
  turn(signal: AbortSignal): Promise<void> {
    return new Promise(resolve => {
      if (signal.aborted) return resolve()
      const aborted = (): void => turn.resolve()
      const turn: Turn = {
        due: this.#clock.monotonic() + this.#options.pollIntervalMs,
        resolve: () => {
          signal.removeEventListener('abort', aborted)
          this.#waiting.delete(turn)
          if (this.#waiting.size === 0) this.stop()
          resolve()
        },
      }
      signal.addEventListener('abort', aborted, { once: true })
      this.#waiting.add(turn)
      this.#arm()
    })
  }

  /** Cancels the timer. Callers that wait for a turn must be released by the signals that they passed. */
  stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #arm(): void {
    const [first] = this.#waiting
    if (first === undefined || this.#timer !== undefined) return
    const at = Math.max(first.due, this.#roundAt + this.#options.pollRoundMs)
    this.#timer = this.#clock.setTimer(Math.max(0, at - this.#clock.monotonic()), () => this.#round())
  }

  #round(): void {
    this.#timer = undefined
    this.#roundAt = this.#clock.monotonic()
    let left = this.#options.pollsPerRound
    for (const turn of this.#waiting) {
      if (turn.due > this.#roundAt || left-- === 0) break
      turn.resolve()
    }
    this.#arm()
  }
}
