import type { Log, LogFields } from '@sectional/runtime'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** Passes each line of a node's log to the world, with its fields as JSON. */
export class NodeLog implements Log {
  readonly #write: (level: LogLevel, text: string) => void
  readonly #fields: LogFields

  constructor(write: (level: LogLevel, text: string) => void, fields: LogFields = {}) {
    this.#write = write
    this.#fields = fields
  }

  debug(fields: LogFields, message: string): void {
    this.#line('debug', fields, message)
  }

  info(fields: LogFields, message: string): void {
    this.#line('info', fields, message)
  }

  warn(fields: LogFields, message: string): void {
    this.#line('warn', fields, message)
  }

  error(fields: LogFields, message: string): void {
    this.#line('error', fields, message)
  }

  child(fields: LogFields): Log {
    return new NodeLog(this.#write, { ...this.#fields, ...fields })
  }

  #line(level: LogLevel, fields: LogFields, message: string): void {
    this.#write(level, `${message} ${JSON.stringify({ ...this.#fields, ...fields }, describeErrors)}`)
  }
}

function describeErrors(_key: string, value: unknown): unknown {
  return value instanceof Error ? `${value.name}: ${value.message}` : value
}
