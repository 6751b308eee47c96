/** What is fixed while the process runs. Settings that act on the next request are read through `HttpSettings`. */
export interface HttpOptions {
  /** Requests worked on at once; more are answered 503 with Retry-After. */
  readonly concurrentRequestsMax: number
  /** Changes feeds that wait at once, beside those requests; more are answered 503 with Retry-After. */
  readonly feedsMax: number
  /** Those of them that carry a body and come from clients that are not logged in; more are answered 503 with Retry-After. */
  readonly anonymousBodiesMax: number
  /** Milliseconds that a body may take, and a second more for each `bodyBytesPerSecondMin` that have come; 408 then. */
  readonly bodyGraceMs: number
  /** The same for clients that are not logged in. */
  readonly anonymousBodyGraceMs: number
  readonly bodyBytesPerSecondMin: number
  /** Bytes of one request body, after decompression (413 above). `chttpd/max_http_request_size` may lower it. */
  readonly bodyBytesMax: number
  /** Bytes of all request bodies held at once, and of all whole answers that clients have not taken; more are answered 503 with Retry-After. */
  readonly bufferedBodyBytesMax: number
  /** Decoded bytes of a gzip body for each byte sent, above 4 MiB (413). */
  readonly gzipRatioMax: number
  /** Values and names of members in the JSON of one request that is no document (413 above). */
  readonly jsonValuesMax: number
  /** Estimated memory for what the bodies of all running requests became when they were parsed; more are answered 503 with Retry-After. */
  readonly parsedBytesMax: number
  /** Documents accepted with `batch=ok` and not yet written; beyond that a `batch=ok` write is awaited. */
  readonly batchedDocumentsMax: number
  /** Bytes of their bodies, beyond which a `batch=ok` write is awaited too. */
  readonly batchedBytesMax: number
  /** Verified credentials kept in memory. */
  readonly credentialsMax: number
  /** Password verifications (PBKDF2) at once; each occupies one thread of the pool. */
  readonly passwordChecksMax: number
  /** Level of the line written for each request. */
  readonly requestLog: 'info' | 'debug' | 'none'
}

const mebibyte = 1024 * 1024

export const defaultHttpOptions: HttpOptions = Object.freeze({
  concurrentRequestsMax: 4096,
  feedsMax: 20_000,
  anonymousBodiesMax: 1024,
  bodyGraceMs: 30_000,
  anonymousBodyGraceMs: 5_000,
  bodyBytesPerSecondMin: 1024,
  bodyBytesMax: 128 * mebibyte,
  bufferedBodyBytesMax: 256 * mebibyte,
  gzipRatioMax: 100,
  jsonValuesMax: 500_000,
  parsedBytesMax: 512 * mebibyte,
  batchedDocumentsMax: 1000,
  batchedBytesMax: 16 * mebibyte,
  credentialsMax: 10_000,
  passwordChecksMax: 2,
  requestLog: 'debug',
})
