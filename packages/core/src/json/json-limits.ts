import { ApiError } from '../errors.ts'

/** Deepest nesting of arrays and objects that is accepted. */
export const jsonDepthMax = 1000

export function tooDeep(): ApiError {
  return new ApiError('bad_request', `JSON is nested deeper than ${jsonDepthMax} levels; use a flatter structure`)
}
