/**
 * Finds the user of a request with the authentication handlers of `chttpd/authentication_handlers`, in their order. The
 * first handler that finds a user, or refuses the request, decides.
 */
import type { HttpExchange } from '@sectional/runtime'
import type { HandlerName } from '../settings/handler-options.ts'
import type { HttpOptions } from '../settings/http-options.ts'
import { anonymous, type User } from '../request/user.ts'
import type { Authenticator } from './authenticator.ts'
import type { ProxyAuthentication } from './proxy-authentication.ts'
import type { Sessions } from './sessions.ts'
import type { TokenAuthentication } from './token-authentication.ts'

/** A request as the handlers see it. */
export interface AuthenticatedRequest {
  readonly exchange: Pick<HttpExchange, 'headers'>
  readonly clientAddress: string
  readonly requestId: string
  readonly signal: AbortSignal
}

export interface Identity {
  readonly user: User
  /** Value of a renewed session cookie that the response sets, or null. */
  readonly renewed: string | null
}

type Found = Identity | null

/**
 * Returns null when the request has no credentials of its kind, synchronously when nothing must be read or computed.
 * @throws ApiError when it refuses the credentials
 */
type Handler = (request: AuthenticatedRequest) => Found | Promise<Found>

export interface RequestAuthenticationParts {
  readonly options: Pick<HttpOptions, 'authenticationHandlers'>
  readonly sessions: Sessions
  readonly proxy: ProxyAuthentication
  readonly tokens: TokenAuthentication
  readonly authenticator: Authenticator
}

const nobody: Identity = Object.freeze({ user: anonymous, renewed: null })

export class RequestAuthentication {
  readonly #options: Pick<HttpOptions, 'authenticationHandlers'>
  readonly #handlers: Readonly<Record<HandlerName, Handler>>

  constructor({ options, sessions, proxy, tokens, authenticator }: RequestAuthenticationParts) {
    this.#options = options
    this.#handlers = {
      cookie: ({ exchange: { headers: { cookie } } }) => cookie === undefined ? null : sessions.find(cookie),
      proxy: ({ exchange: { headers } }) => identity(proxy.find(headers)),
      jwt: ({ exchange: { headers: { authorization } } }) => later(tokens.find(authorization)),
      default: request => later(authenticator.authenticate(request.exchange.headers.authorization, request)),
    }
  }

  /** @throws ApiError when a handler refuses the request */
  identify(request: AuthenticatedRequest): Identity | Promise<Identity> {
    return this.#try(this.#options.authenticationHandlers, 0, request)
  }

  #try(names: readonly HandlerName[], start: number, request: AuthenticatedRequest): Identity | Promise<Identity> {
    for (let at = start; at < names.length; at++) {
      const found = this.#handlers[names[at]!](request)
      if (found instanceof Promise) return found.then(later => later ?? this.#try(names, at + 1, request))
      if (found !== null) return found
    }
    return nobody
  }
}

function later(user: User | null | Promise<User>): Found | Promise<Found> {
  return user instanceof Promise ? user.then(identity) : identity(user)
}

function identity(user: User | null): Found {
  return user === null || user === anonymous ? null : { user, renewed: null }
}
