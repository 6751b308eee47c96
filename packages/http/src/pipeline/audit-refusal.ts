/** Records requests that were refused with 401 or 403, and failed logins. */
import { ApiError } from '@sectional/core'
import { originOf } from '../audit/audit.ts'
import { parseBasicCredentials } from '../authentication/basic-credentials.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { splitTarget } from '../request/request-path.ts'

/** @param isIdentified false: the error comes from the authentication of the request */
export function auditRefusal(
  request: RequestContext, { audit }: Services, error: unknown, isIdentified: boolean,
): void {
  if (!(error instanceof ApiError)) return
  const { status, reason } = error
  if (isIdentified ? status !== 401 && status !== 403 : status >= 500) return
  const isLogin = !isIdentified || (request.route === 'session' && request.method === 'POST')
  const details = {
    method: request.exchange.method, path: splitTarget(request.exchange.target).path, route: request.route, status,
    reason,
  }
  if (isLogin) {
    const user = request.attemptedName ?? basicName(request)
    audit.record({ ...originOf(request), user, event: 'authentication_failed', details })
  } else {
    audit.record({ ...originOf(request), event: 'permission_refused', details })
  }
}

/** Returns the name of Basic credentials; null when there is none. */
function basicName(request: RequestContext): string | null {
  try {
    return parseBasicCredentials(request.header('authorization') ?? '')?.name ?? null
  } catch {
    return null
  }
}
