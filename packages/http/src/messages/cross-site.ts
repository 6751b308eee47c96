/**
 * Refuses requests with which another site uses the session of a user who visits it. Browsers send cookies with forms
 * and scripts of other sites. Before they send other methods than POST, or a JSON body, they ask the server (a CORS
 * preflight), which allows only origins that the administrator has named. What is left is POST with the types of forms.
 */
import { ApiError } from '@sectional/core'
import type { RequestContext } from '../request/request-context.ts'
import type { HttpOptions } from '../settings/http-options.ts'
import { allowsCredentialsOf } from './cross-origin.ts'

/** The content types of forms, which browsers send to other sites without asking (Fetch Standard 2.2.2). */
const formTypes: ReadonlySet<string> = new Set([
  'application/x-www-form-urlencoded', 'multipart/form-data', 'text/plain',
])

/**
 * Checks a request that has a session cookie. Logins are exempt.
 * @throws ApiError `forbidden` when another site sends it, `bad_content_type` for the type of a form when it is not
 * known who sends it
 */
export function requireSameSite(request: RequestContext, options: HttpOptions): void {
  if (request.user.handler !== 'cookie' || request.method !== 'POST' || request.segments[0] === '_session') return
  const type = request.header('content-type')?.split(';', 1)[0]!.trim().toLowerCase()
  if (type !== undefined && !formTypes.has(type)) return
  const isSame = comesFromSameOrigin(request)
  if (isSame === true || allowsCredentialsOf(request, options)) return
  if (isSame === false) throw usedByOtherSite()
  // No browser sends it, because browsers name the origin of every POST.
  if (type === undefined) return
  throw new ApiError('bad_content_type', 'Content-Type must be application/json')
}

/**
 * Checks a request with a session cookie that a function of a design document turns into one with another method.
 * Browsers follow links of other sites with the cookie, but only with GET.
 * @throws ApiError `forbidden` for a GET or HEAD that becomes a write, unless a page of this server sends it
 */
export function requireSameSiteRewrite(request: RequestContext, method: string): void {
  const isReading = (name: string): boolean => name === 'GET' || name === 'HEAD'
  if (request.user.handler !== 'cookie' || !isReading(request.method) || isReading(method)) return
  if (comesFromSameOrigin(request) !== true) throw usedByOtherSite()
}

function usedByOtherSite(): ApiError {
  return new ApiError('forbidden', 'Another site must not use the session of a user.')
}

/** Returns whether the page that sends the request is from this server; undefined when the request does not tell. */
function comesFromSameOrigin(request: RequestContext): boolean | undefined {
  const site = request.header('sec-fetch-site')
  if (site !== undefined) return site === 'same-origin' || site === 'none'
  const page = request.header('origin') ?? request.header('referer')
  if (page === undefined) return undefined
  if (!URL.canParse(page)) return false
  const { protocol, host } = new URL(page)
  // Pages of other sites cannot set either header.
  return [request.header('host'), request.header('x-forwarded-host')].some(own => {
    const url = `${protocol}//${own}`
    return own !== undefined && URL.canParse(url) && new URL(url).host === host
  })
}
