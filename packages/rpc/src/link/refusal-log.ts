import type { Clock, Log, LogFields } from '@sectional/runtime'

const repeatMs = 60_000
const maxRemembered = 256

/** Warns of what goes wrong with a peer: the same thing once a minute, the rest as debug lines. */
export class RefusalLog {
  readonly #log: Log
  readonly #clock: Clock
  /** What was warned of -> when, oldest first. */
  readonly #warnedMs = new Map<string, number>()

  constructor(log: Log, clock: Clock) {
    this.#log = log
    this.#clock = clock
  }

  warn(key: string, fields: LogFields, message: string): void { this.#write('warn', key, fields, message) }

  /** For what stays wrong until somebody acts. */
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

  /** It went well: the next failure is worth a warning again. */
  forget(key: string): void { this.#warnedMs.delete(key) }
}
