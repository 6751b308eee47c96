/** Limits how many filters of changes feeds wait for the sandbox at the same time. */
import { ClientGoneError, SandboxError, sleep, type Clock } from '@sectional/runtime'

/**
 * Filters of one database that call the sandbox at the same time. The others wait here, so that a change that wakes a
 * thousand feeds does not fill the queue of the sandbox, in which writes wait for their validation.
 */
const databaseCallsMax = 16
/** Milliseconds after which a call that the sandbox refused is repeated. They double with each further refusal. */
const retryMs = 100
const retryMsMax = 2000
/** Milliseconds for which calls are repeated. */
const patienceMs = 30_000

/** The filters of one database. The number of those that wait is limited by that of requests and feeds. */
interface DatabaseCalls { running: number; readonly waiting: (() => void)[] }

/** The request of a feed. */
export interface Caller {
  readonly database: { readonly incarnation: string }
  /** Aborts when the client has left. */
  readonly signal: AbortSignal
}

export class FilterCalls {
  readonly #clock: Clock
  /** By the incarnation of the database. Only databases with running calls are present. */
  readonly #databases = new Map<string, DatabaseCalls>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Calls the sandbox when it is the request's turn. A call that is refused because the sandbox is overloaded is
   * repeated for up to 30 s.
   *
   * @throws ClientGoneError when the client leaves while its request waits
   */
  async run<T>({ database: { incarnation }, signal }: Caller, call: () => Promise<T>): Promise<T> {
    const begin = this.#clock.monotonic()
    for (let waitMs = retryMs; ; waitMs = Math.min(2 * waitMs, retryMsMax)) {
      try {
        return await this.#inTurn(incarnation, signal, call)
      } catch (error) {
        const isRefused = error instanceof SandboxError && error.code === 'overloaded'
        if (!isRefused || this.#clock.monotonic() - begin + waitMs > patienceMs) throw error
      }
      await sleep(this.#clock, waitMs, signal)
    }
  }

  async #inTurn<T>(database: string, signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    const calls = await this.#enter(database)
    try {
      if (signal.aborted) throw new ClientGoneError()
      return await call()
    } finally {
      this.#leave(database, calls)
    }
  }

  async #enter(database: string): Promise<DatabaseCalls> {
    const calls = this.#databases.get(database) ?? { running: 0, waiting: [] }
    this.#databases.set(database, calls)
    if (calls.running < databaseCallsMax) calls.running++
    // The call that ends hands its place over, so that `running` does not change.
    else await new Promise<void>(resolve => { calls.waiting.push(resolve) })
    return calls
  }

  #leave(database: string, calls: DatabaseCalls): void {
    const next = calls.waiting.shift()
    if (next !== undefined) return next()
    if (--calls.running === 0) this.#databases.delete(database)
  }
}
