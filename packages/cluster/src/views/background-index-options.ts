import { flag, option } from '@sectional/core/options'

export const backgroundIndexDeclarations = {
  updatesIndexes: option('views/background_updates', flag, {
    default: true,
    effect: 'live',
    help: 'Bring the indexes of views and of _find up to date some seconds after documents or design documents have '
      + 'changed, without waiting for a query. A design document with "autoupdate": false is left out.',
  }),
}

/** Limits of the updates of indexes that no query waits for. Times are in milliseconds. */
export interface BackgroundIndexOptions {
  /** Time from a change to the update, and from the start of an update to the next one. */
  readonly delayMs: number
  /** Number of databases whose indexes are updated at the same time, one after the other in each. */
  readonly databasesMax: number
  /** Time for which one index keeps the others waiting. Then its update goes on beside theirs. */
  readonly longMs: number
  /** Number of such updates. When there are as many, a further one keeps the others waiting until one has ended. */
  readonly longMax: number
  /** Time without progress after which the update of an index is given up. */
  readonly waitMs: number
}

export const defaultBackgroundIndexOptions: BackgroundIndexOptions = Object.freeze({
  delayMs: 5_000,
  databasesMax: 2,
  longMs: 10_000,
  longMax: 32,
  waitMs: 30_000,
})
