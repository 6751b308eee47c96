/** Structured logs. Secrets never enter: no credentials, no bodies. */
export interface Log {
  debug(fields: LogFields, message: string): void
  info(fields: LogFields, message: string): void
  warn(fields: LogFields, message: string): void
  error(fields: LogFields, message: string): void
  /** A log whose lines all carry `fields`. */
  child(fields: LogFields): Log
}

export type LogFields = Readonly<Record<string, unknown>>
