/**
 * Sessions: who a cookie stands for, and the cookies that begin, renew and end one
 * (docs/reference/security.md#post-_session).
 */
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

/** A session with less than this part of its life left is renewed by the next answer. */
const renewedBelow = 0.9

export interface SessionsParts {
  readonly configuration: Configuration
  readonly options: HttpOptions
  readonly secrets: SessionSecrets
  readonly clock: Clock
}

export interface FoundSession {
  readonly user: User
  /** Value for a fresh cookie; null: this one is young. */
  readonly renewed: string | null
}

export class Sessions {
  readonly #parts: SessionsParts

  constructor(parts: SessionsParts) {
    this.#parts = parts
  }

  /**
   * null: no session, or one that is over, forged, or of nobody that exists.
   * @throws ApiError `bad_request` for a cookie that cannot be read
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

  /** The cookie's value for somebody whose password was right. */
  async begin(name: string): Promise<string> {
    const secret = await this.#parts.secrets.signing()
    const [digest] = signatureDigests(this.#parts.options.hashAlgorithms)
    return makeSessionCookie(name, this.#now(), secret + (this.#saltOf(name) ?? ''), digest!)
  }

  /** @param value empty: ends the session in the browser */
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
