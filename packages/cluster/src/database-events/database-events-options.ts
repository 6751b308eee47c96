import { flag, option } from '@sectional/core/options'

export const databaseEventsDeclarations = {
  recordDatabaseEvents: option('global_changes/update_db', flag, {
    default: true,
    effect: 'live',
    help: 'Record for _db_updates which databases are created, written to and deleted, from the first time that '
      + 'somebody asks for it.',
  }),
}

/** Bounds of the recording of database events. Milliseconds and counts. */
export interface DatabaseEventsOptions {
  /** From an event to its record ... */
  readonly delayMs: number
  /** ... and from one record to the next, however often a database is written to. */
  readonly intervalMs: number
  /** How often a node looks whether the node that is to record a write is still linked ... */
  readonly watchMs: number
  /** ... and for how long: until a broken link would have been noticed. */
  readonly trustMs: number
  /** After a failure. */
  readonly retryMs: number
  /** Events of one write. */
  readonly batchMax: number
  readonly readTimeoutMs: number
}

export const defaultDatabaseEventsOptions: DatabaseEventsOptions = Object.freeze({
  delayMs: 50,
  intervalMs: 350,
  watchMs: 1_000,
  trustMs: 8_000,
  retryMs: 1_000,
  batchMax: 500,
  readTimeoutMs: 10_000,
})
