import type { Clock } from '../clock/clock.ts'
import type { Log, LogFields } from './log.ts'

/** Milliseconds between two lines of one kind. */
const intervalMsDefault = 60_000
/** Kinds that are told apart; further ones are written each time. */
const kindsMax = 256

interface Kind { writtenAt: number; leftOut: number }

/**
 * Lines about failures that repeat, as those of a full disk do many times a second: the first line of a kind is written
 * at once, then one a minute, whose field `leftOut` says how many there were in between.
 */
export class RepeatedLines {
  readonly #log: Log
  readonly #clock: Clock
  readonly #intervalMs: number
  readonly #kinds = new Map<string, Kind>()

  constructor(log: Log, clock: Clock, intervalMs = intervalMsDefault) {
    this.#log = log
    this.#clock = clock
    this.#intervalMs = intervalMs
  }

  /**
   * @param kind what makes two of these lines alike, besides the message: a code and who is concerned, no texts with
   * numbers in them
   */
  warn(kind: string, fields: LogFields, message: string): void {
    const counted = this.#counted(kind, fields, message)
    if (counted !== undefined) this.#log.warn(counted, message)
  }

  /** @param kind as for `warn` */
  error(kind: string, fields: LogFields, message: string): void {
    const counted = this.#counted(kind, fields, message)
    if (counted !== undefined) this.#log.error(counted, message)
  }

  /** The fields of the line; undefined: it is left out. */
  #counted(kind: string, fields: LogFields, message: string): LogFields | undefined {
    const now = this.#clock.monotonic()
    const key = `${message}\0${kind}`
    const known = this.#kinds.get(key)
    if (known !== undefined && now - known.writtenAt < this.#intervalMs) {
      known.leftOut++
      return undefined
    }
    if (this.#kinds.size >= kindsMax) this.#forgetOld(now)
    if (this.#kinds.size < kindsMax) this.#kinds.set(key, { writtenAt: now, leftOut: 0 })
    return known === undefined || known.leftOut === 0 ? fields : { ...fields, leftOut: known.leftOut }
  }

  #forgetOld(now: number): void {
    for (const [key, { writtenAt }] of this.#kinds) if (now - writtenAt >= this.#intervalMs) this.#kinds.delete(key)
  }
}
