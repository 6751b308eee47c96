import type { Log, LogFields } from '@sectional/runtime'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** Path of the checkout in stack traces, which is removed. */
const stackPath = /file:\/\/[^ ]*?(?=packages\/)/g
/** A line of a stack trace in JSON, unless it names code of a node. Such lines depend on who started the simulation. */
const foreignFrame = /\\n {4}at (?![^\\"]*packages\/(?!simulator\/)[a-z]+\/src\/)[^\\"]*/g

/**
 * Passes each line to the world, without paths of the checkout and without lines of stack traces that name code outside
 * of the nodes, so that the text is the same on every machine and for every caller.
 */
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
    const text = `${message} ${JSON.stringify({ ...this.#fields, ...fields }, describeErrors)}`
    this.#write(level, text.replaceAll(stackPath, '').replaceAll(foreignFrame, ''))
  }
}

function describeErrors(_key: string, value: unknown): unknown {
  return value instanceof Error ? `${value.name}: ${value.message}` : value
}
