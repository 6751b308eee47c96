import { ApiError } from '@sectional/core'

export const retryAfter = { 'Retry-After': '1' }

/** Tells clients that the node handles as much of a kind as it can. */
export function overloaded(what: string): ApiError {
  return new ApiError('service_unavailable', `This node is handling as many ${what} as it can; try again shortly.`, {
    headers: retryAfter,
  })
}
