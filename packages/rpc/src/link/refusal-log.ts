import type { Clock, Log, LogFields } from '@sectional/runtime'

const repeatMs = 60_000
const maxRemembered = 256

/** Logs failures of links. The same failure is logged once a minute at its level, and otherwise as a debug line. */
export class RefusalLog {
  readonly #log: Log
  readonly #clock: Clock
  /** When each failure was last logged at its level, by its key, oldest first. At most `maxRemembered` entries. */
  readonly #warnedMs = new Map<string, number>()

  constructor(log: Log, clock: Clock) {
    this.#log = log
    this.#clock = clock
  }

  warn(key: string, fields: LogFields, message: string): void { this.#write('warn', key, fields, message) }

  /** Like `warn`, for failures that last until an operator acts. */
  error(key: string, fields: LogFields, message: string): void { this.#write('error', key, fields, message) }

  #write(level: 'warn' | 'error', key: string, fields: LogFields, message: string): void {
    const nowMs = this.#clock.monotonic()
    const lastMs = this.#warnedMs.get(key)
    if (lastMs !== undefined && nowMs - lastMs < repeatMs) return this.#log.debug(fields, message)
    this.#warnedMs.delete(key)
    this.#warnedMs.set(key, nowMs)
    if (this.#warnedMs.size > maxRemembered) {
      for (const oldest of this.#warnedMs.keys()) {
        this.#warnedMs.delete(oldest)
        break
      }
    }
    this.#log[level](fields, message)
  }

  /**
   * Call this after a success, so that the next failure is logged at its level again.
   * @param subject a key, or the part of keys before `: `
   */
  forget(subject: string): void {
    for (const key of this.#warnedMs.keys()) {
      if (key === subject || key.startsWith(`${subject}: `)) this.#warnedMs.delete(key)
    }
  }
}
