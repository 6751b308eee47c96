/** Sends browsers to a login page (`chttpd_auth/authentication_redirect`) when a request needs a login. */
import type { ApiError } from '@sectional/core'
import { origin } from './response.ts'
import type { RequestContext } from '../request/request-context.ts'
import { splitTarget } from '../request/request-path.ts'
import { virtualHostPath } from '../request/virtual-hosts.ts'
import type { Services } from '../services/services.ts'

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
  if (status !== 401 || loginPath === '') return null
  if (!accepts(accept, 'text/html') || accepts(accept, 'application/json')) return null
  const query = `return=${encodeURIComponent(returnPath(request))}&reason=${encodeURIComponent(reason)}`
  return `${origin(request, services)}${loginPath}?${query}`
}

/** Returns whether an Accept header has the type, with its ranges, and does not refuse it by `q=0`. */
function accepts(header: string, type: string): boolean {
  const [whole, ofKind] = [type, type.replace(/\/.*/, '/*')]
  const ranges = header.toLowerCase().replace(/\s/g, '').split(',').map(range => {
    const [name, ...parameters] = range.split(';')
    return { name, isRefused: parameters.some(parameter => /^q=0(?:\.0*)?$/.test(parameter)) }
  })
  if (ranges.some(({ name, isRefused }) => isRefused && (name === whole || name === ofKind))) return false
  return ranges.some(({ name, isRefused }) => !isRefused && (name === whole || name === ofKind || name === '*/*'))
}

/** Returns the path that the browser knows, which a virtual host may have mapped to another one. */
function returnPath(request: RequestContext): string {
  const mapped = request.header(virtualHostPath)
  if (mapped !== undefined) return mapped
  const { segments, exchange: { target } } = request
  return `/${segments.join('/')}${segments.length > 0 && splitTarget(target).path.endsWith('/') ? '/' : ''}`
}
