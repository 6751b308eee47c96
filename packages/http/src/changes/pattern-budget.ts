/**
 * Time that the patterns of one request may take, so that a client cannot keep a node busy with patterns that
 * backtrack.
 */
import { SelectorError, type TestInTime } from '@sectional/core'
import type { Clock, Machine } from '@sectional/runtime'

/** All patterns on one document. */
const documentMsMax = 200
/** What a test may take without being counted: an ordinary one takes far less, but the machine may be busy. */
const freeMs = 1
/**
 * What a match that is surely short counts for at most: a pause of the whole process must not refuse a selector of a
 * few patterns.
 */
const shortMatchMsMax = 20
/** Counted time of one request at its start, and what it gains while it lasts: feeds may last for days. */
const requestMs = 5_000
const gainedPart = 0.05

/**
 * Counts the time of tests: of those that may backtrack, of which `Machine.testInTime` bounds each single one, and of
 * the others, since compiling a pattern can take some tenths of a second.
 */
export class PatternBudget {
  readonly #clock: Clock
  readonly #machine: Machine
  readonly #startedAt: number
  #spentMs = 0
  #documentMs = 0

  constructor(clock: Clock, machine: Machine) {
    this.#clock = clock
    this.#machine = machine
    this.#startedAt = clock.monotonic()
  }

  /** To be called before the tests of another document. */
  beginDocument(): void {
    this.#documentMs = 0
  }

  /** @throws SelectorError `bad_arg` when the request has used up its time */
  readonly testInTime: TestInTime = (pattern, text, msMax) => {
    const startedAt = this.#clock.monotonic()
    const allowedMs = requestMs + gainedPart * (startedAt - this.#startedAt)
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
}

function tooSlow(limit: string): SelectorError {
  return new SelectorError('bad_arg', `Bad argument for operator $regex: the patterns took more than ${limit}; use fewer patterns, or write them without repetitions within repetitions`)
}
