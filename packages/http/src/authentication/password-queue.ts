import { overloaded } from '../request/admission.ts'

/** Passwords that may wait for a thread. Further ones are refused with 503. */
const waitingMax = 100

/**
 * Limits how many passwords are hashed at the same time, because each one occupies a thread of the pool for about
 * 100 ms. Others wait in their order.
 */
export class PasswordQueue {
  readonly #runningMax: number
  readonly #waiting: (() => void)[] = []
  #running = 0

  /** @param runningMax passwords that are hashed at the same time */
  constructor(runningMax: number) {
    this.#runningMax = runningMax
  }

  /** @throws ApiError `service_unavailable` with Retry-After when too many passwords are waiting */
  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#running < this.#runningMax) this.#running++
    else {
      if (this.#waiting.length >= waitingMax) throw overloaded('password checks')
      await new Promise<void>(resolve => { this.#waiting.push(resolve) })
    }
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#running--
      else next()
    }
  }
}
