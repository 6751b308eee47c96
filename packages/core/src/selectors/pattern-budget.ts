/**
 * Limits the time that the regular expressions of one request may take, so that a client cannot occupy a node with
 * patterns that backtrack.
 */
import { SelectorError } from './selector-error.ts'
import type { TestInTime } from './text-pattern.ts'

/** The part of `Clock` that measures time, in milliseconds. */
interface PatternClock { monotonic(): number }

/** The part of `Machine` that ends a test of a pattern after a time. */
interface PatternMachine { readonly testInTime: TestInTime }

/** Milliseconds that all patterns may take on one document. */
const documentMsMax = 200
/** Milliseconds of a test that are not counted. An ordinary test takes far less, but the machine may be busy. */
const freeMs = 1
/**
 * Maximum milliseconds that are counted for a pattern that cannot backtrack. It prevents a pause of the whole process
 * from failing a selector of a few patterns.
 */
const shortMatchMsMax = 20
/**
 * Milliseconds that a request may use at its start. The allowance grows while the request lasts, because a feed may
 * last for days.
 */
const requestMs = 5_000
const gainedPart = 0.05

/**
 * Counts the time of pattern tests. `Machine.testInTime` limits each test of a pattern that may backtrack. Tests of
 * other patterns are counted too, because compiling a pattern can take some tenths of a second.
 */
export class PatternBudget {
  readonly #clock: PatternClock
  readonly #machine: PatternMachine
  readonly #startedAt: number
  #spentMs = 0
  #documentMs = 0

  constructor(clock: PatternClock, machine: PatternMachine) {
    this.#clock = clock
    this.#machine = machine
    this.#startedAt = clock.monotonic()
  }

  /** Whether a further document may take the time that one document may take. */
  get hasRoom(): boolean {
    return this.#spentMs + documentMsMax <= this.#allowedMs(this.#clock.monotonic())
  }

  /** Resets the limit for one document. Call this before the tests of each document. */
  beginDocument(): void {
    this.#documentMs = 0
  }

  /** Runs a test. @throws SelectorError `bad_arg` when the request has used up its time */
  readonly testInTime: TestInTime = (pattern, text, msMax) => {
    const startedAt = this.#clock.monotonic()
    const allowedMs = this.#allowedMs(startedAt)
    if (this.#spentMs >= allowedMs) throw tooSlow(`${Math.round(allowedMs)} ms in this request`)
    if (this.#documentMs >= documentMsMax) throw tooSlow(`${documentMsMax} ms on one document`)
    const isShort = msMax === Number.POSITIVE_INFINITY
    const fits = isShort
      ? pattern.test(text)
      : this.#machine.testInTime(pattern, text, Math.max(1, Math.min(msMax, documentMsMax - this.#documentMs)))
    const measuredMs = this.#clock.monotonic() - startedAt
    const tookMs = isShort ? Math.min(measuredMs, shortMatchMsMax) : measuredMs
    this.#documentMs += tookMs
    this.#spentMs += Math.max(0, tookMs - freeMs)
    return fits
  }

  #allowedMs(now: number): number {
    return requestMs + gainedPart * (now - this.#startedAt)
  }
}

function tooSlow(limit: string): SelectorError {
  const advice = 'use fewer patterns, or write them without repetitions within repetitions'
  return new SelectorError(
    'bad_arg', `Bad argument for operator $regex: the patterns took more than ${limit}; ${advice}`,
  )
}
