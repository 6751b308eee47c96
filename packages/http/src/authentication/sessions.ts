/** Creates, verifies, renews and ends sessions (docs/reference/security.md#post-_session). */
import type { Clock } from '@sectional/runtime'
import type { Accounts } from './accounts.ts'
import { requireNoConflicts, type Account } from './user-account.ts'
import type { HttpOptions } from '../settings/http-options.ts'
import {
  findSessionCookie, isSignedBy, makeSessionCookie, readSessionCookie, sessionCookieHeader, signatureDigests,
  type SessionCookie,
} from './session-cookie.ts'
import type { SessionSecrets } from './session-secrets.ts'
import type { User } from '../request/user.ts'

/** A session is renewed by the next response when less than this fraction of its lifetime is left. */
const renewedBelow = 0.9

export interface SessionsParts {
  readonly accounts: Accounts
  readonly options: HttpOptions
  readonly secrets: SessionSecrets
  readonly clock: Clock
}

export interface FoundSession {
  readonly user: User
  /** Value of a renewed cookie, or null when the session need not be renewed yet. */
  readonly renewed: string | null
}

export class Sessions {
  readonly #parts: SessionsParts

  constructor(parts: SessionsParts) {
    this.#parts = parts
  }

  /**
   * Returns null when there is no session, when it is expired or its signature is wrong, and when its user does not
   * exist. The result is a promise when the user's account must be read.
   * @throws ApiError `bad_request` for a malformed cookie, `unauthorized` for an account with conflicts
   */
  find(cookieHeader: string | undefined): FoundSession | null | Promise<FoundSession | null> {
    const value = findSessionCookie(cookieHeader)
    if (value === null) return null
    const cookie = readSessionCookie(value)
    const left = cookie.time + this.#parts.options.sessionSeconds - this.#now()
    if (left <= 0) return null
    const account = this.#parts.accounts.current(cookie.name)
    return account === undefined
      ? this.#parts.accounts.open(cookie.name).then(opened => this.#continue(cookie, left, opened))
      : this.#continue(cookie, left, account)
  }

  #continue(cookie: SessionCookie, left: number, account: Account | null): FoundSession | null {
    const hash = account?.hash ?? null
    if (account === null || hash === null) return null
    const { options } = this.#parts
    const secrets = this.#parts.secrets.valid()
    const digests = signatureDigests(options.hashAlgorithms)
    if (!isSigned(cookie, secrets, hash.salt, digests)) return null
    requireNoConflicts(account)
    const user: User = { ...account.user, handler: 'cookie' }
    if (left >= options.sessionSeconds * renewedBelow) return { user, renewed: null }
    return { user, renewed: makeSessionCookie(cookie.name, this.#now(), secrets[0]! + hash.salt, digests[0]!) }
  }

  /** Returns a cookie value for an account whose password was verified. */
  async begin({ user, hash }: Account): Promise<string> {
    const secret = await this.#parts.secrets.signing()
    const [digest] = signatureDigests(this.#parts.options.hashAlgorithms)
    return makeSessionCookie(user.name, this.#now(), secret + (hash?.salt ?? ''), digest!)
  }

  /** Returns the Set-Cookie header. @param value an empty value ends the session in the browser */
  header(value: string, encrypted: boolean): string {
    return sessionCookieHeader(value, this.#parts.options, this.#parts.clock.now(), encrypted)
  }

  /** Returns whole seconds, like the time in the cookie. */
  #now(): number {
    return Math.floor(this.#parts.clock.now() / 1000)
  }
}

function isSigned(
  cookie: SessionCookie, secrets: readonly string[], salt: string, digests: readonly string[],
): boolean {
  return secrets.some(secret => digests.some(digest => isSignedBy(cookie, secret + salt, digest)))
}
