/** `/_session`: who the client is, login and logout with a cookie (docs/reference/security.md#get-_session). */
import { ApiError, isJsonObject, parseJson } from '@sectional/core'
import type { Login } from '../authentication/authenticator.ts'
import { readBody } from '../messages/body.ts'
import { auditRefusal } from '../pipeline/audit-refusal.ts'
import { Query } from '../request/query.ts'
import { origin, sendJson } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import type { RequestLimit } from '../settings/size-limits.ts'

/** Limit of a body that clients send without being logged in. */
const bodyLimit: RequestLimit = { bytes: 64 * 1024, setting: 'the limit of this endpoint' }

const wrongCredentials = 'Name or password is incorrect.'

export function getSession(request: RequestContext, services: Services): void {
  const { user } = request
  if (user.name === null && request.query.flag('basic')) throw new ApiError('unauthorized', 'Please login.')
  sendJson(request, services, 200, {
    ok: true,
    userCtx: { name: user.name, roles: user.roles },
    info: {
      authentication_handlers: services.options.authenticationHandlers,
      ...(user.handler === undefined ? {} : { authenticated: user.handler }),
      authentication_db: services.options.authenticationDatabase,
    },
  })
}

export async function postSession(request: RequestContext, services: Services): Promise<void> {
  const { redirects, ...login } = await readLogin(request, services)
  request.attemptedName = login.name
  const account = await services.authenticator.login({ ...login, client: request })
  if (account === null) {
    auditRefusal(request, services, new ApiError('unauthorized', wrongCredentials), true)
    const body = { error: 'unauthorized', reason: wrongCredentials }
    return answer(request, services, { status: 401, body, cookie: '', next: redirects.fail })
  }
  const cookie = await services.sessions.begin(account)
  const { name: accountName, roles } = account.user
  const body = { ok: true, name: accountName, roles }
  answer(request, services, { status: 200, body, cookie, next: redirects.next })
}

/** Deletes the cookie. It succeeds without a session too, so that a browser can always remove its cookie. */
export function deleteSession(request: RequestContext, services: Services): void {
  answer(request, services, { status: 200, body: { ok: true }, cookie: '', next: request.query.get('next') })
}

/** Paths to which the browser is redirected after a success, and after a failure. */
interface Redirects { readonly next: string | undefined; readonly fail: string | undefined }

type GivenLogin = Omit<Login, 'client'> & { readonly redirects: Redirects }

async function readLogin(request: RequestContext, services: Services): Promise<GivenLogin> {
  const type = request.header('content-type')?.split(';', 1)[0]!.trim().toLowerCase()
  switch (type) {
    case 'application/json': {
      const value = parseJson(await readBody(request, services, bodyLimit))
      if (!isJsonObject(value)) throw new ApiError('not_an_object')
      const { query } = request
      return login(name => value[name], { next: query.get('next'), fail: query.get('fail') })
    }
    case 'application/x-www-form-urlencoded': {
      const form = readForm(Buffer.from(await readBody(request, services, bodyLimit)).toString('utf8').trim())
      const redirect = (name: string): string | undefined => request.query.get(name) ?? form.get(name)
      return login(name => form.get(name), { next: redirect('next'), fail: redirect('fail') })
    }
    default:
      throw new ApiError(
        'bad_content_type', "Content-Type must be 'application/x-www-form-urlencoded' or 'application/json'",
      )
  }
}

/** Returns the fields of a form. The first value of a repeated field counts, as in CouchDB. */
function readForm(text: string): Query {
  return Query.parse(text.split('&').reverse().join('&'))
}

function login(member: (name: string) => unknown, redirects: Redirects): GivenLogin {
  const text = (name: string): string | undefined => {
    const value = member(name)
    return typeof value === 'string' ? value : undefined
  }
  const name = text('name')
  const username = text('username')
  if (name !== undefined && username !== undefined && name !== username) {
    throw new ApiError('bad_request', 'request body contains different usernames')
  }
  const given = name ?? username
  if (given === undefined) throw new ApiError('bad_request', 'request body must contain a username')
  return { name: given, password: text('password') ?? '', token: text('token') ?? '', redirects }
}

interface SessionAnswer {
  readonly status: number
  readonly body: object
  readonly cookie: string
  /** The path to which the browser is redirected; undefined: it is not. */
  readonly next: string | undefined
}

function answer(request: RequestContext, services: Services, { status, body, cookie, next }: SessionAnswer): void {
  const headers = { 'Set-Cookie': services.sessions.header(cookie, request, services.crossOrigin) }
  if (next === undefined) return sendJson(request, services, status, body, headers)
  // Only paths on this server are allowed. The origin is prepended, so `//host` leads to no other host.
  if (!next.startsWith('/')) throw new ApiError('bad_request', 'path must begin with a /.')
  sendJson(request, services, 302, body, { ...headers, Location: origin(request, services) + escaped(next) })
}

/** Escapes what must not stand in a header. Escapes that the path has already are kept. */
function escaped(path: string): string {
  return encodeURI(path.toWellFormed()).replaceAll(/%25([0-9A-Fa-f]{2})/g, '%$1')
}
