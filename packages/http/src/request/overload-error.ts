import { ApiError } from '@sectional/core'

export const retryAfter = { 'Retry-After': '1' }

/**
 * Tells clients that the node handles as much of a kind as it can.
 * @param limits the options that limit it
 */
export function overloaded(what: string, ...limits: readonly { readonly name: string }[]): ApiError {
  const options = limits.map(({ name }) => name).join(', ')
  const reason = `This node is handling as many ${what} as it can (${options}); try again shortly.`
  return new ApiError('service_unavailable', reason, { headers: retryAfter })
}
