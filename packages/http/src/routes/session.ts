/** `GET /_session`: who the client is. Cookie logins (POST, DELETE) are not part of this version. */
import { ApiError } from '@sectional/core'
import { sendJson } from '../response.ts'
import type { RequestContext } from '../request-context.ts'
import type { Services } from '../services.ts'

export function getSession(request: RequestContext, services: Services): void {
  const { user } = request
  if (user.name === null && request.query.flag('basic')) throw new ApiError('unauthorized', 'Please login.')
  sendJson(request, services, 200, {
    ok: true,
    userCtx: { name: user.name, roles: user.roles },
    info: {
      authentication_handlers: ['default'],
      ...(user.handler === undefined ? {} : { authenticated: user.handler }),
      authentication_db: services.settings.authenticationDatabase,
    },
  })
}
