import { ApiError } from '../errors.ts'

/** Deepest nesting of arrays and objects that is accepted. */
export const JSON_DEPTH_MAX = 1000

export function tooDeep(): ApiError {
  return new ApiError('bad_request', `JSON is nested deeper than ${JSON_DEPTH_MAX} levels`)
}
