import type { Log, LogFields } from './log.ts'

/** The maximum number of lines; the oldest line is dropped beyond it. */
const linesMax = 10_000

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly message: string
  readonly fields: LogFields
}

/** Keeps the newest lines in memory, so that tests can inspect them. */
export class MemoryLog implements Log {
  /** Oldest first; shared by all children. */
  readonly lines: LogLine[]
  readonly #fields: LogFields

  constructor(fields: LogFields = {}, lines: LogLine[] = []) {
    this.#fields = fields
    this.lines = lines
  }

  debug(fields: LogFields, message: string): void {
    this.#add('debug', fields, message)
  }

  info(fields: LogFields, message: string): void {
    this.#add('info', fields, message)
  }

  warn(fields: LogFields, message: string): void {
    this.#add('warn', fields, message)
  }

  error(fields: LogFields, message: string): void {
    this.#add('error', fields, message)
  }

  child(fields: LogFields): Log {
    return new MemoryLog({ ...this.#fields, ...fields }, this.lines)
  }

  /** Returns the messages of one level, oldest first. */
  messages(level: LogLine['level']): string[] {
    return this.lines.filter(line => line.level === level).map(line => line.message)
  }

  #add(level: LogLine['level'], fields: LogFields, message: string): void {
    this.lines.push({ level, message, fields: { ...this.#fields, ...fields } })
    if (this.lines.length > linesMax) this.lines.shift()
  }
}
