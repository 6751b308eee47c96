/** Structured logs. Lines contain no secrets: no credentials and no bodies. */
export interface Log {
  debug(fields: LogFields, message: string): void
  info(fields: LogFields, message: string): void
  warn(fields: LogFields, message: string): void
  error(fields: LogFields, message: string): void
  /**
   * Returns a log that adds `fields` to each of its lines.
   *
   * @param level lowest level of the lines that are written; that of this log by default
   */
  child(fields: LogFields, level?: 'info'): Log
}

export type LogFields = Readonly<Record<string, unknown>>
