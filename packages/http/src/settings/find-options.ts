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

  intersectionSavedMin: option('mango/intersection_saved_min', integer({ min: 0, max: 2 ** 46, unit: 'documents' }), {
    default: 100,
    effect: 'live',
    help: 'A query reads a second index to filter the rows of the first one if that is expected to save at least this '
      + 'many reads of documents. 0: queries never read two indexes.',
  }),

  /** Bounds the memory of a selector, and the time of its test of each document. */
  selectorConditionsMax: option('mango/selector_conditions_max', integer({ min: 1, max: 1_000_000 }), {
    default: 10_000,
    effect: 'live',
    help: 'Maximum number of conditions of a selector in a request, those within $or and $elemMatch included. '
      + 'Requests with more get 400.',
  }),

  /** Bounds the time in which a selector is read: by the node, and once more for each shard. */
  findBytesMax: option('mango/request_bytes_max', integer({ min: 1024, max: 2 ** 30, unit: 'bytes' }), {
    default: 2 * 1024 * 1024,
    effect: 'live',
    help: 'Maximum size of the body of a query by selector. Requests with more get 413. For longer lists of ids, use '
      + '_all_docs with keys.',
  }),

  /** Bounds the work of a query without matches, whose client may wait for an answer for ever. */
  scanTimeoutMs: option('mango/scan_timeout', integer({ min: 1, max: 86_400_000, unit: 'milliseconds' }), {
    default: 300_000,
    effect: 'live',
    help: 'Time in which a query by selector must find its first match, and each further one, and in which a count or '
      + 'an aggregation must end; otherwise it gets 500 timeout. The builds of indexes have their own time '
      + '(fabric/view_timeout).',
  }),

  /** Bounds the memory of a sort, in which each document of the answer and of those skipped is held. */
  sortedRowsMax: option('mango/sort_rows_max', integer({ min: 1, max: 1_000_000, unit: 'documents' }), {
    default: 10_000,
    effect: 'live',
    help: 'Maximum of skip plus limit of a request of _find that sorts in memory (sort_in_memory).',
  }),
}
