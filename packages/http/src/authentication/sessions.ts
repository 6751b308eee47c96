/**
 * Creates, verifies, renews and ends sessions (docs/reference/security.md#post-_session). Verified cookies are kept in
 * memory under a keyed hash, because parsing a cookie and verifying its signature cost a third of the request for a
 * document. A kept cookie is valid only while the account and the secret are those that it was verified with.
 */
import { hash } from 'node:crypto'
import type { Clock, Random } from '@sectional/runtime'
import type { Accounts } from './accounts.ts'
import { BoundedMap } from './bounded-map.ts'
import { requireNoConflicts, type Account } from './user-account.ts'
import type { CrossOriginHosts } from '../request/cross-origin-hosts.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { HttpOptions } from '../settings/http-options.ts'
import {
  findSessionCookie, isSignedBy, makeSessionCookie, readSessionCookie, sessionCookieHeader, signatureDigests,
  type SessionCookie,
} from './session-cookie.ts'
import type { SessionSecrets } from './session-secrets.ts'
import type { User } from '../request/user.ts'

/** A session is renewed by the next response when less than this fraction of its lifetime is left. */
const renewedBelow = 0.9
const keyBytes = 32

export interface SessionsParts {
  readonly accounts: Accounts
  readonly options: HttpOptions
  readonly secrets: SessionSecrets
  readonly clock: Clock
  readonly random: Random
}

/** A cookie whose signature was verified. */
interface Verified {
  readonly cookie: SessionCookie
  readonly user: User
  readonly account: Account
  /** The secret that the signature was made with. */
  readonly secret: string
  /** The option at that time; a change makes another object. */
  readonly hashAlgorithms: readonly string[]
}

export interface FoundSession {
  readonly user: User
  /** Value of a renewed cookie, or null when the session need not be renewed yet. */
  readonly renewed: string | null
}

export class Sessions {
  readonly #parts: SessionsParts
  readonly #key: string
  readonly #verified: BoundedMap<string, Verified>

  constructor(parts: SessionsParts) {
    this.#parts = parts
    this.#key = Buffer.from(parts.random.bytes(keyBytes)).toString('hex')
    this.#verified = new BoundedMap(parts.options.credentialsMax)
  }

  /**
   * Returns null when there is no session, when it is expired or its signature is wrong, and when its user does not
   * exist. The result is a promise when the user's account must be read.
   * @throws ApiError `bad_request` for a malformed cookie, `unauthorized` for an account with conflicts
   */
  find(cookieHeader: string | undefined): FoundSession | null | Promise<FoundSession | null> {
    const value = findSessionCookie(cookieHeader)
    if (value === null) return null
    const fingerprint = hash('sha256', this.#key + value, 'base64')
    const known = this.#verified.get(fingerprint)
    const cookie = known?.cookie ?? readSessionCookie(value)
    if (this.#left(cookie) <= 0) return null
    const account = this.#parts.accounts.current(cookie.name)
    if (known !== undefined && known.account === account && this.#isValid(known)) return this.#found(known)
    if (account === undefined) {
      return this.#parts.accounts.open(cookie.name).then(opened => this.#verify(fingerprint, cookie, opened))
    }
    return this.#verify(fingerprint, cookie, account) ?? this.#verifyAgain(fingerprint, cookie, account)
  }

  /** Another node may have written a new password, with a new salt, and begun the session. */
  async #verifyAgain(
    fingerprint: string, cookie: SessionCookie, before: Account | null,
  ): Promise<FoundSession | null> {
    const { accounts, clock } = this.#parts
    const account = await accounts.confirm(cookie.name, before, clock.monotonic())
    return account === before ? null : this.#verify(fingerprint, cookie, account)
  }

  #isValid({ secret, hashAlgorithms }: Verified): boolean {
    return hashAlgorithms === this.#parts.options.hashAlgorithms && this.#parts.secrets.valid().includes(secret)
  }

  #verify(fingerprint: string, cookie: SessionCookie, account: Account | null): FoundSession | null {
    const salt = account?.hash?.salt
    if (account === null || salt === undefined) return null
    const { hashAlgorithms } = this.#parts.options
    const digests = signatureDigests(hashAlgorithms)
    const secret = this.#parts.secrets.valid()
      .find(candidate => digests.some(digest => isSignedBy(cookie, candidate + salt, digest)))
    if (secret === undefined) return null
    requireNoConflicts(account)
    const verified = { cookie, user: { ...account.user, handler: 'cookie' } as const, account, secret, hashAlgorithms }
    this.#verified.set(fingerprint, verified)
    return this.#found(verified)
  }

  #found({ cookie, user, account }: Verified): FoundSession {
    const { options, secrets } = this.#parts
    if (this.#left(cookie) >= options.sessionSeconds * renewedBelow) return { user, renewed: null }
    const [digest] = signatureDigests(options.hashAlgorithms)
    const key = secrets.valid()[0]! + account.hash!.salt
    return { user, renewed: makeSessionCookie(cookie.name, this.#now(), key, digest!) }
  }

  /** Returns the seconds for which the cookie is valid, 0 or less when it has expired. */
  #left(cookie: SessionCookie): number {
    return cookie.time + this.#parts.options.sessionSeconds - this.#now()
  }

  /** Returns a cookie value for an account whose password was verified. */
  async begin({ user, hash }: Account): Promise<string> {
    const secret = await this.#parts.secrets.signing()
    const [digest] = signatureDigests(this.#parts.options.hashAlgorithms)
    return makeSessionCookie(user.name, this.#now(), secret + (hash?.salt ?? ''), digest!)
  }

  /** Returns the Set-Cookie header. @param value an empty value ends the session in the browser */
  header(value: string, { exchange }: RequestContext, crossOrigin: CrossOriginHosts): string {
    const { clock, options } = this.#parts
    return sessionCookieHeader(value, options, clock.now(), exchange.encrypted, crossOrigin.of(exchange))
  }

  /** Returns whole seconds, like the time in the cookie. */
  #now(): number {
    return Math.floor(this.#parts.clock.now() / 1000)
  }
}
