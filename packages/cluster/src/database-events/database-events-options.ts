import { flag, option } from '@sectional/core/options'

export const databaseEventsDeclarations = {
  recordDatabaseEvents: option('global_changes/update_db', flag, {
    default: true,
    effect: 'live',
    help: 'Record for _db_updates which databases are created, written to and deleted. Recording begins with the first '
      + 'request for _db_updates.',
  }),
}

/** Limits of the recording of database events. Times are in milliseconds. */
export interface DatabaseEventsOptions {
  /** Time from an event to its record. */
  readonly delayMs: number
  /** Shortest time between two records of events, however often databases are written. */
  readonly intervalMs: number
  /** Interval at which a node checks that the node that has to record a write is still linked. */
  readonly watchMs: number
  /** Time for which it checks; a broken link is detected within this time. */
  readonly trustMs: number
  /** Time until the next attempt after a failure. */
  readonly retryMs: number
  /** Largest number of events in one write. */
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
