/** Options of queries by selector. */
import { integer, option } from '@sectional/core/options'

export const findDeclarations = {
  findLimit: option('mango/default_limit', integer({ min: 0, max: 2 ** 46, unit: 'documents' }), {
    default: 25,
    effect: 'live',
    help: 'Number of documents that _find returns when the request has no limit.',
  }),

  scanWarningRatio: option('mango/index_scan_warning_threshold', integer({ min: 0, max: 2 ** 46, unit: 'documents' }), {
    default: 10,
    effect: 'live',
    help: 'An answer of _find has a warning when more documents than this were read for each one that it returns. '
      + '0: it never has.',
  }),

  /** Bounds the memory of a sort, in which each document of the answer and of those skipped is held. */
  sortedRowsMax: option('mango/sort_rows_max', integer({ min: 1, max: 1_000_000, unit: 'documents' }), {
    default: 10_000,
    effect: 'live',
    help: 'Maximum of skip plus limit of a request of _find that sorts in memory (sort_in_memory).',
  }),
}
