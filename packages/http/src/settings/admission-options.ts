/** Options that limit what the HTTP API holds and processes at the same time. */
import { integer, option } from '@sectional/core/options'

const mebibyte = 1024 * 1024
const count = integer({ min: 1, max: 1_000_000 })
const bodyTime = integer({ min: 100, max: 86_400_000, unit: 'milliseconds' })

export const admissionDeclarations = {
  concurrentRequestsMax: option('limits/concurrent_requests', count, {
    default: 4096,
    effect: 'restart',
    help: 'Maximum number of requests that are handled at the same time; further requests get 503 with Retry-After. '
      + 'Half of them may be requests of clients that are logged in whose body has not arrived; beyond it, the oldest '
      + 'one of the address with the most gets 503.',
  }),

  feedsMax: option('limits/changes_feeds', integer({ min: 1, max: 10_000_000 }), {
    default: 20_000,
    effect: 'restart',
    help: 'Maximum number of changes feeds that wait at the same time, in addition to other requests; further ones get '
      + '503 with Retry-After.',
  }),

  anonymousBodiesMax: option('limits/anonymous_bodies', count, {
    default: 1024,
    effect: 'restart',
    help: 'Maximum number of request bodies of clients that are not logged in that are received at the same time. '
      + 'Beyond it, the oldest one of the address with the most gets 503.',
  }),

  bodyGraceMs: option('limits/body_grace_ms', bodyTime, {
    default: 30_000,
    effect: 'restart',
    help: 'Time that a request body may take, plus one second for each body_bytes_per_second bytes that have arrived; '
      + 'a slower request gets 408.',
  }),

  anonymousBodyGraceMs: option('limits/anonymous_body_grace_ms', bodyTime, {
    default: 5_000,
    effect: 'restart',
    help: 'The same time as body_grace_ms, for clients that are not logged in.',
  }),

  bodyBytesPerSecondMin: option('limits/body_bytes_per_second', integer({ min: 1, max: 2 ** 30, unit: 'bytes' }), {
    default: 1024,
    effect: 'restart',
    help: 'Bytes of a request body that extend its time by one second.',
  }),

  /** Limit after decompression. `requestBytesMax` may be lower. */
  bodyBytesMax: option('limits/body_bytes', integer({ min: 1024, max: 2 ** 31, unit: 'bytes' }), {
    default: 128 * mebibyte,
    effect: 'restart',
    help: 'Largest request body after decompression; a larger one gets 413.',
  }),

  bufferedBodyBytesMax: option('limits/buffered_body_bytes', integer({ min: 1024, max: 2 ** 40, unit: 'bytes' }), {
    default: 256 * mebibyte,
    effect: 'restart',
    help: 'Maximum size of all request bodies that are in memory at the same time; the same limit applies to all large '
      + 'answers that clients have not received yet. A request beyond it gets 503 with Retry-After. Several bodies of '
      + 'one address may take three quarters of it, and several of changes feeds half of it.',
  }),

  /** Decoded bytes of a gzip body for each byte sent. The ratio is not checked for bodies of up to 4 MiB decoded. */
  gzipRatioMax: option('limits/gzip_ratio', integer({ min: 1, max: 2000 }), {
    default: 100,
    effect: 'restart',
    help: 'Maximum ratio of the decoded size of a gzip request body to its size; a body with a higher ratio and more '
      + 'than 4 MiB of decoded bytes gets 413.',
  }),

  jsonValuesMax: option('limits/json_values', integer({ min: 1000, max: 100_000_000 }), {
    default: 500_000,
    effect: 'restart',
    help: 'Maximum number of values and member names in the JSON of a request, except in documents (keys, _bulk_get, '
      + '_revs_diff, selectors, ...); a request with more gets 413.',
  }),

  parsedBytesMax: option('limits/parsed_bytes', integer({ min: mebibyte, max: 2 ** 40, unit: 'bytes' }), {
    default: 512 * mebibyte,
    effect: 'restart',
    help: 'Maximum of the estimated memory for the parsed bodies of all running requests; a request beyond it gets 503 '
      + 'with Retry-After unless it is the only large one. Several changes feeds may take half of it.',
  }),

  /** When more `batch=ok` writes are open, further ones are awaited. */
  batchedDocumentsMax: option('limits/batched_documents', integer({ min: 0, max: 1_000_000 }), {
    default: 1000,
    effect: 'restart',
    help: 'Maximum number of documents that were accepted with batch=ok and are not written yet; beyond it, a request '
      + 'waits for its write.',
  }),

  /** When open `batch=ok` writes have more bytes, further ones are awaited. */
  batchedBytesMax: option('limits/batched_bytes', integer({ min: 0, max: 2 ** 40, unit: 'bytes' }), {
    default: 16 * mebibyte,
    effect: 'restart',
    help: 'Maximum size of all documents together that were accepted with batch=ok and are not written yet; beyond it, '
      + 'a request waits for its write.',
  }),

  credentialsMax: option('limits/credentials', integer({ min: 0, max: 10_000_000 }), {
    default: 10_000,
    effect: 'restart',
    help: 'Maximum number of verified credentials that are kept in memory.',
  }),

  /** Each password check occupies one thread of the pool. */
  passwordChecksMax: option('limits/password_checks', integer({ min: 1, max: 64 }), {
    default: 2,
    effect: 'restart',
    help: 'Maximum number of passwords that are verified at the same time.',
  }),
}
