/** Creates, verifies, renews and ends sessions (docs/reference/security.md#post-_session). */
import type { Clock } from '@sectional/runtime'
import type { Configuration } from '../settings/configuration.ts'
import type { HttpOptions } from '../settings/http-options.ts'
import { parseAdminHash } from './admin-password.ts'
import {
  findSessionCookie, isSignedBy, makeSessionCookie, readSessionCookie, sessionCookieHeader, signatureDigests,
  type SessionCookie,
} from './session-cookie.ts'
import type { SessionSecrets } from './session-secrets.ts'
import type { User } from '../request/user.ts'

/** A session is renewed by the next response when less than this fraction of its lifetime is left. */
const renewedBelow = 0.9

export interface SessionsParts {
  readonly configuration: Configuration
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
   * exist.
   * @throws ApiError `bad_request` for a malformed cookie
   */
  find(cookieHeader: string | undefined): FoundSession | null {
    const value = findSessionCookie(cookieHeader)
    if (value === null) return null
    const cookie = readSessionCookie(value)
    const { options } = this.#parts
    const left = cookie.time + options.sessionSeconds - this.#now()
    const salt = left > 0 ? this.#saltOf(cookie.name) : null
    if (salt === null) return null
    const secrets = this.#parts.secrets.valid()
    const digests = signatureDigests(options.hashAlgorithms)
    if (!isSigned(cookie, secrets, salt, digests)) return null
    const user: User = { name: cookie.name, roles: ['_admin'], admin: true, handler: 'cookie' }
    if (left >= options.sessionSeconds * renewedBelow) return { user, renewed: null }
    return { user, renewed: makeSessionCookie(cookie.name, this.#now(), secrets[0]! + salt, digests[0]!) }
  }

  /** Returns a cookie value for a user whose password was verified. */
  async begin(name: string): Promise<string> {
    const secret = await this.#parts.secrets.signing()
    const [digest] = signatureDigests(this.#parts.options.hashAlgorithms)
    return makeSessionCookie(name, this.#now(), secret + (this.#saltOf(name) ?? ''), digest!)
  }

  /** Returns the Set-Cookie header. @param value an empty value ends the session in the browser */
  header(value: string, encrypted: boolean): string {
    return sessionCookieHeader(value, this.#parts.options, this.#parts.clock.now(), encrypted)
  }

  #saltOf(name: string): string | null {
    const storedHash = this.#parts.configuration.get('admins', name)
    return storedHash === undefined ? null : parseAdminHash(storedHash)?.salt ?? null
  }

  #now(): number {
    return this.#parts.clock.now() / 1000
  }
}

function isSigned(
  cookie: SessionCookie, secrets: readonly string[], salt: string, digests: readonly string[],
): boolean {
  return secrets.some(secret => digests.some(digest => isSignedBy(cookie, secret + salt, digest)))
}
