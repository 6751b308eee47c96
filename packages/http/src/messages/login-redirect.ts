/** Sends browsers to a login page (`chttpd_auth/authentication_redirect`) when a request needs a login. */
import type { ApiError } from '@sectional/core'
import { origin } from './response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

const html = /(?:^|[\s,])text\/html\b/i
const machineReadable = /application\/json\b|\*\/\*/i

/**
 * Returns the address of the login page for an error, or null when the client gets the error itself: it is no 401, no
 * page is configured, or the client accepts JSON. The page gets the path of the request, without its query, and the
 * reason.
 */
export function loginRedirect(
  request: RequestContext, services: Pick<Services, 'options'>, { status, reason }: ApiError,
): string | null {
  const { loginPath } = services.options
  const accept = request.header('accept') ?? ''
  if (status !== 401 || loginPath === '' || !html.test(accept) || machineReadable.test(accept)) return null
  const path = `/${request.segments.join('/')}`
  const query = `return=${encodeURIComponent(path)}&reason=${encodeURIComponent(reason)}`
  return `${origin(request, services)}${loginPath}?${query}`
}
