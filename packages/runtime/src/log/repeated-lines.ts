import type { Clock } from '../clock/clock.ts'
import type { Log, LogFields } from './log.ts'

/** Milliseconds between two lines of the same kind. */
const intervalMsDefault = 60_000
/** The maximum number of kinds that are counted; lines of further kinds are always written. */
const kindsMax = 256

interface Kind { writtenAt: number; leftOut: number }

/**
 * Limits log lines about repeated failures, such as those of a full disk, which occur many times a second. The first
 * line of a kind is written at once, later ones at most once a minute. The field `leftOut` gives the number of lines in
 * between that were not written.
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
   * @param kind identifies similar lines, together with the message: for instance an error code and a node name, but no
   * text that contains varying numbers
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

  /** Returns the fields of the line; undefined when the line is not written. */
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
