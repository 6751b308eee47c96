/** Declares how much memory the indexes of views use. */
import { defaultValues, integer, option } from '@sectional/core/options'
import type { OptionValues } from '@sectional/core/options'

export const indexDeclarations = {
  /** The most bytes of memory of all runs of rows and pages of summaries of a node (`NodePartCache`). */
  cacheBytes: option('views/cache_bytes', integer({ min: 0, max: 2 ** 36, unit: 'bytes' }), {
    default: 128 * 1024 * 1024,
    effect: 'restart',
    help: 'Memory for rows of views that were read last, and for those of new views while there is room. A lookup '
      + 'whose rows are in memory takes a fraction of the time; small rows need about 100 bytes each.',
  }),
}

export type IndexOptions = OptionValues<typeof indexDeclarations>

export const defaultIndexOptions: IndexOptions = Object.freeze(defaultValues(indexDeclarations))
