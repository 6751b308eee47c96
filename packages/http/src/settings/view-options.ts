/** Options of queries of views, and of lists of documents. */
import { integer, option } from '@sectional/core/options'

const rows = integer({ min: 1, max: 2 ** 46, infinite: true, unit: 'rows' })

export const viewDeclarations = {
  queryRowsMax: option('query_server_config/query_limit', rows, {
    default: Infinity,
    effect: 'live',
    help: 'Maximum number of rows of one query of a view, or of a list such as _all_docs: a greater limit gets 400, '
      + 'and a query without limit returns this number of rows.',
  }),

  partitionQueryRowsMax: option('query_server_config/partition_query_limit', rows, {
    default: Infinity,
    effect: 'live',
    help: 'The same as query_limit, for queries of one partition.',
  }),

  /** Bounds how long a request holds its connection and memory. The builds do not depend on it. */
  queryTimeoutMs: option('fabric/view_timeout', integer({ min: 1, max: 86_400_000, unit: 'milliseconds' }), {
    default: 300_000,
    effect: 'live',
    help: 'Time for which a query of a view waits for its indexes to be built; then it gets 500 with the progress of '
      + 'the builds, which continue.',
  }),
}
