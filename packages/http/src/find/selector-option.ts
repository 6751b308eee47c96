/** Selectors in the bodies of requests. */
import {
  ApiError, parseSelector, ReplicaError, SelectorError, selectorJson, type JsonObject, type Selector,
} from '@sectional/core'

/** Returns what `read` returns, and gives clients the errors of selectors and field names with their codes. */
export function withSelectorErrors<Result>(read: () => Result): Result {
  try {
    return read()
  } catch (error) {
    throw asClientError(error)
  }
}

/**
 * Returns the error for the client when a selector is not valid, or when a replica has found that it takes too long to
 * match; otherwise the given error.
 */
export function asClientError(error: unknown): unknown {
  if (error instanceof SelectorError) return new ApiError(error.code, error.message, { cause: error })
  const isTooSlow = error instanceof ApiError && error.cause instanceof ReplicaError && error.cause.code === 'exhausted'
  return isTooSlow ? new ApiError('bad_arg', error.message, { cause: error }) : error
}

/** @throws ApiError with the code of a SelectorError, also for more conditions than `conditionsMax` */
export function readSelector(value: unknown, conditionsMax: number): Selector {
  return withSelectorErrors(() => parseSelector(value, conditionsMax))
}

/**
 * Returns a partial filter in its normal form; `{}`, which every document passes, when it is absent.
 *
 * @throws ApiError as `readSelector`
 */
export function normalFilter(value: unknown, conditionsMax: number): JsonObject {
  return value === undefined ? {} : selectorJson(readSelector(value, conditionsMax))
}
