/** Options of list functions and rewrites of design documents, and of virtual hosts. */
import { flag, integer, list, option } from '@sectional/core/options'

const mebibyte = 1024 * 1024

export const rewriteDeclarations = {
  listRowsBytesMax: option('query_server_config/list_rows_bytes', integer({
    min: 1, max: 32 * mebibyte, unit: 'bytes',
  }), {
    default: 8 * mebibyte,
    effect: 'live',
    help: 'Rows of a view that a list function may read, as JSON. A function that reads more gets an error.',
  }),

  rewritesMax: option('chttpd/rewrite_limit', integer({ min: 0, max: 1000 }), {
    default: 100,
    effect: 'live',
    help: 'How often a request may be rewritten by rules that lead to other rules; then it gets 400.',
  }),

  secureRewrites: option('chttpd/secure_rewrites', flag, {
    default: true,
    effect: 'live',
    help: 'Refuse rewrites that lead out of the database of their design document.',
  }),

  virtualHostGlobals: option('chttpd/vhost_global_handlers', list, {
    default: ['_utils', '_uuids', '_session', '_users', '_up'],
    effect: 'live',
    help: 'First segments of paths that are the same at every virtual host (the section vhosts).',
  }),
}
