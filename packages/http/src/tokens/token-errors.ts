import { ApiError } from '@sectional/core'

/** Refuses a token that is malformed, or not signed by a known key. The reasons are those of CouchDB. */
export function badToken(reason: string): ApiError {
  return new ApiError('bad_request', reason)
}

/** Refuses a token that is genuine, but does not admit the client now. */
export function unauthorizedToken(reason: string): ApiError {
  return new ApiError('unauthorized', reason)
}
