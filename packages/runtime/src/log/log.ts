/** Structured logs. Lines contain no secrets: no credentials and no bodies. */
export interface Log {
  debug(fields: LogFields, message: string): void
  info(fields: LogFields, message: string): void
  warn(fields: LogFields, message: string): void
  error(fields: LogFields, message: string): void
  /** Returns a log that adds `fields` to each of its lines. */
  child(fields: LogFields): Log
}

export type LogFields = Readonly<Record<string, unknown>>
