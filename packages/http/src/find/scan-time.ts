import { ApiError } from '@sectional/core'
import type { OperationContext } from '@sectional/cluster'
import type { Clock, Timer } from '@sectional/runtime'

/** Ends a query that looks for its next match, or reads all of them for a number, for longer than `msMax`. */
export class ScanTime {
  /** For the operations of the query. Its signal also aborts when the time has passed. */
  readonly context: OperationContext
  readonly #clock: Clock
  readonly #msMax: number
  readonly #passed = new AbortController()
  #timer: Timer | undefined

  /** The time begins to run. @param msMax milliseconds */
  constructor(clock: Clock, msMax: number, { requestId, signal }: OperationContext) {
    this.#clock = clock
    this.#msMax = msMax
    this.context = { requestId, signal: AbortSignal.any([signal, this.#passed.signal]) }
    this.begin()
  }

  /** Lets the whole time run from now on. */
  begin(): void {
    this.stop()
    this.#timer = this.#clock.setTimer(this.#msMax, () => this.#passed.abort())
  }

  /** Stops the time, for instance while a match is sent to the client. */
  stop(): void {
    this.#timer?.cancel()
  }

  /** Returns the error for the client: the given one unless the time has passed. */
  errorOf(error: unknown): unknown {
    if (!this.#passed.signal.aborted) return error
    const reason = `The query has found no match for ${this.#msMax} ms (mango/scan_timeout). `
      + 'Create an index for its selector.'
    return new ApiError('timeout', reason, { cause: error })
  }
}
