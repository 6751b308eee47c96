import { integer, option } from '@sectional/core/options'

export const designDocumentDeclarations = {
  designDocumentBytesMax: option('ddoc_cache/max_size', integer({ min: 1024 * 1024, max: 2 ** 40, unit: 'bytes' }), {
    default: 100 * 1024 * 1024,
    effect: 'live',
    help: 'Memory of this node for design documents. The least recently used database is removed first. A database '
      + 'whose design documents need more than this accepts no writes.',
  }),
}

/** Limits of the cache of design documents. Times are in milliseconds. */
export interface DesignDocumentOptions {
  /** Age at which an entry is compared with the replicas before it is used. */
  readonly confirmMs: number
  /** Age at which the use of an entry starts this comparison in the background. */
  readonly confirmAheadMs: number
  /** Longest time for which a request waits for a comparison when the entry that it has may be used without it. */
  readonly confirmWaitMs: number
  /** Memory of all entries together. */
  readonly bytesMax: () => number
}

export const defaultDesignDocumentOptions: DesignDocumentOptions = Object.freeze({
  confirmMs: 5_000,
  confirmAheadMs: 4_000,
  confirmWaitMs: 1_000,
  bytesMax: () => designDocumentDeclarations.designDocumentBytesMax.default,
})
