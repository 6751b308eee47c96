/**
 * Finds the user of an Authorization header. Verifying a password costs about 100 ms of a thread, so the result is
 * cached under a keyed hash of the header. A cached result is valid only while the account is the one that it was
 * verified against.
 */
import { hash } from 'node:crypto'
import { ApiError } from '@sectional/core'
import type { Machine, Random } from '@sectional/runtime'
import { requireNoConflicts, type Account } from './user-account.ts'
import type { Accounts } from './accounts.ts'
import { BoundedMap } from './bounded-map.ts'
import type { HttpOptions } from '../settings/http-options.ts'
import { parseBasicCredentials, type BasicCredentials } from './basic-credentials.ts'
import { derivedKeyBytes, verifyPassword } from './password-hash.ts'
import type { PasswordQueue } from './password-queue.ts'
import { anonymous, type User } from '../request/user.ts'

const keyBytes = 32

export interface AuthenticatorParts {
  readonly accounts: Accounts
  readonly passwords: PasswordQueue
  readonly machine: Machine
  readonly random: Random
  readonly options: Pick<
    HttpOptions, 'credentialsMax' | 'passwordIterations' | 'passwordIterationsMin' | 'passwordIterationsMax'
  >
}

/** The outcome of a check. */
interface Verified {
  readonly name: string
  /** The account that was checked; null: there was none. */
  readonly account: Account | null
  /** Null: the password was wrong, or there was no account. */
  readonly user: User | null
}

export class Authenticator {
  readonly #parts: AuthenticatorParts
  readonly #key: string
  readonly #verified: BoundedMap<string, Verified>
  readonly #running = new Map<string, { readonly account: Account | null; readonly outcome: Promise<Verified> }>()

  constructor(parts: AuthenticatorParts) {
    this.#parts = parts
    this.#key = Buffer.from(parts.random.bytes(keyBytes)).toString('hex')
    this.#verified = new BoundedMap(parts.options.credentialsMax)
  }

  /**
   * Returns the user, synchronously when the credentials and the account are cached.
   * @throws ApiError `unauthorized` for a wrong name or password and for an account with conflicts, `forbidden` for an
   * iteration count outside the server's bounds, `bad_request` for a malformed header
   */
  authenticate(authorization: string | undefined): User | Promise<User> {
    if (authorization === undefined) return anonymous
    const fingerprint = hash('sha256', this.#key + authorization, 'base64')
    const known = this.#verified.get(fingerprint)
    if (known !== undefined && this.#parts.accounts.current(known.name) === known.account) {
      return known.user ?? refuse()
    }
    const credentials = parseBasicCredentials(authorization)
    return credentials === null ? anonymous : this.#authenticate(fingerprint, credentials)
  }

  /**
   * Returns the account with that name and password, or null.
   * @throws ApiError as `authenticate`, and `service_unavailable` when too many password checks are waiting
   */
  async login(name: string, password: string): Promise<Account | null> {
    const fingerprint = hash('sha256', this.#key + JSON.stringify([name, password]), 'base64')
    const { account, user } = await this.#check(fingerprint, { name, password })
    return user === null ? null : account
  }

  async #authenticate(fingerprint: string, credentials: BasicCredentials): Promise<User> {
    return (await this.#check(fingerprint, credentials)).user ?? refuse()
  }

  /** Verifies the same credentials once for requests that come together. */
  async #check(fingerprint: string, credentials: BasicCredentials): Promise<Verified> {
    const account = await this.#parts.accounts.open(credentials.name)
    const known = this.#verified.get(fingerprint)
    if (known?.account === account) return known
    const running = this.#running.get(fingerprint)
    if (running?.account === account) return running.outcome
    const check = { account, outcome: this.#verify(fingerprint, credentials, account) }
    this.#running.set(fingerprint, check)
    try {
      return await check.outcome
    } finally {
      if (this.#running.get(fingerprint) === check) this.#running.delete(fingerprint)
    }
  }

  async #verify(
    fingerprint: string, { name, password }: BasicCredentials, account: Account | null,
  ): Promise<Verified> {
    if (account !== null) requireNoConflicts(account)
    const right = await this.#parts.passwords.run(() => this.#isRight(password, account))
    const user: User | null = right ? { ...account!.user, handler: 'default' } : null
    const verified = { name, account, user }
    this.#verified.set(fingerprint, verified)
    return verified
  }

  /**
   * Does the work of a check for an unknown user too, so that the time of the answer does not show which users exist.
   */
  async #isRight(password: string, account: Account | null): Promise<boolean> {
    const { machine, options } = this.#parts
    const stored = account?.hash ?? null
    if (stored !== null) return verifyPassword(password, stored, machine, options)
    const salt = this.#key.slice(0, keyBytes)
    await machine.pbkdf2(password, salt, options.passwordIterations, derivedKeyBytes.sha256, 'sha256')
    return false
  }
}

function refuse(): never {
  throw new ApiError('unauthorized', 'Name or password is incorrect.')
}
