/**
 * Refuses requests with which another site uses the rights of a user who visits it. Browsers send cookies with forms
 * and scripts of other sites, and Basic credentials that the user has typed into their dialog. A proxy in front of the
 * server may add its headers to such requests. Before browsers send other methods than POST, or a JSON body, they ask
 * the server (a CORS preflight), which allows only origins that the administrator has named. What is left is POST with
 * the types of forms.
 *
 * Programs send Basic credentials and headers of a proxy, too, and need not name an origin. Such requests are therefore
 * refused only when they show that they come from another origin, and requests with a cookie unless they show that
 * they do not. Browsers never send a token in an Authorization header by themselves.
 */
import { ApiError } from '@sectional/core'
import type { RequestContext } from '../request/request-context.ts'
import type { CrossOriginOptions } from '../request/cross-origin-hosts.ts'
import { allowsCredentialsOf, isListedOrigin } from './cross-origin.ts'

/** The content types of forms, which browsers send to other sites without asking (Fetch Standard 2.2.2). */
const formTypes: ReadonlySet<string> = new Set([
  'application/x-www-form-urlencoded', 'multipart/form-data', 'text/plain',
])

/**
 * Checks a request of a user. Logins are exempt.
 * @throws ApiError `forbidden` when another site sends it, `bad_content_type` for a session cookie and the type of a
 * form when it is not known who sends it
 */
export function requireSameSite(request: RequestContext, options: CrossOriginOptions): void {
  const { handler } = request.user
  if (handler === undefined || handler === 'jwt' || request.method !== 'POST' || request.segments[0] === '_session') {
    return
  }
  const type = request.header('content-type')?.split(';', 1)[0]!.trim().toLowerCase()
  if (type !== undefined && !formTypes.has(type)) return
  const isSame = comesFromSameOrigin(request)
  if (handler !== 'cookie') {
    const page = request.header('origin')
    // Programs may send a Referer, but neither of these two headers.
    const isNamed = page !== undefined || request.header('sec-fetch-site') !== undefined
    if (isNamed && isSame === false && !isListedOrigin(request, options)) throw usesCredentials(page, type)
    return
  }
  if (isSame === true || allowsCredentialsOf(request, options)) return
  if (isSame === false) throw usedByOtherSite()
  // No browser sends it, because browsers name the origin of every POST.
  if (type === undefined) return
  throw new ApiError('bad_content_type', 'Content-Type must be application/json')
}

/**
 * Checks a request that a function of a design document turns into one with another method. Browsers follow links of
 * other sites with the cookie or Basic credentials, but only with GET. What earlier rewrites have made of method and
 * headers does not count.
 * @throws ApiError `forbidden` for a GET or HEAD that becomes a write: with a cookie unless a page of this server sends
 * it, with other credentials when a page of another site does
 */
export function requireSameSiteRewrite(request: RequestContext, method: string): void {
  const isReading = (name: string): boolean => name === 'GET' || name === 'HEAD'
  const { handler } = request.user
  if (handler === undefined || handler === 'jwt' || !isReading(request.sentMethod) || isReading(method)) return
  const isSame = comesFromSameOrigin(request)
  if (handler === 'cookie' ? isSame !== true : isSame === false) throw usedByOtherSite()
}

/**
 * Checks a request for a script, which pages of every site can load and whose result they see.
 * @throws ApiError `forbidden` with a cookie unless a page of this server sends it, and with other credentials when a
 *   page of another site does
 */
export function requireSameSiteScript(request: RequestContext): void {
  const { handler } = request.user
  if (handler === undefined || handler === 'jwt') return
  const isSame = comesFromSameOrigin(request)
  if (handler === 'cookie' ? isSame !== true : isSame === false) throw usedByOtherSite()
}

function usedByOtherSite(): ApiError {
  return new ApiError('forbidden', 'Another site must not use the session of a user.')
}

/** @param page the origin of the page that sends the request, if it is known */
function usesCredentials(page: string | undefined, type: string | undefined): ApiError {
  return new ApiError('forbidden', `A page of ${page ?? 'another site'} must not use the credentials of a user with `
    + `${type === undefined ? 'no Content-Type' : `Content-Type ${type}`}. Send Content-Type application/json, or list `
    + 'the origin of the page in cors/origins.')
}

/** Returns whether the page that sends the request is from this server; undefined when the request does not tell. */
function comesFromSameOrigin({ sent: { headers }, forwardedHost }: RequestContext): boolean | undefined {
  const site = headers['sec-fetch-site']
  if (site !== undefined) return site === 'same-origin' || site === 'none'
  const page = headers['origin'] ?? headers['referer']
  if (page === undefined) return undefined
  if (!URL.canParse(page)) return false
  const { protocol, host } = new URL(page)
  // Pages of other sites cannot set either header.
  return [headers['host'], forwardedHost].some(own => {
    const url = `${protocol}//${own}`
    return own !== undefined && URL.canParse(url) && new URL(url).host === host
  })
}
