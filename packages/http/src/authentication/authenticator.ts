/**
 * Finds the user of an Authorization header. Verifying a password costs about 100 ms of a thread, so the result is
 * cached under a keyed hash of the header. A cached result is valid only while the account is the one that it was
 * verified against. The iteration count is checked, and an outdated hash replaced, whether it is cached or not.
 */
import { hash } from 'node:crypto'
import { ApiError, clientNetwork } from '@sectional/core'
import { ClientGoneError, type Clock, type Machine, type Random } from '@sectional/runtime'
import { isUserName, requireNoConflicts, type Account } from './user-account.ts'
import type { Accounts } from './accounts.ts'
import { BoundedMap } from './bounded-map.ts'
import type { HttpOptions } from '../settings/http-options.ts'
import { parseBasicCredentials, type BasicCredentials } from './basic-credentials.ts'
import { KnownClients } from './known-clients.ts'
import { OneTimePasswords } from './one-time-passwords.ts'
import {
  administratorBounds, derivedKeyBytes, requireIterations, verifyPassword, type IterationBounds,
} from './password-hash.ts'
import type { Attempt, Lockout } from './lockout.ts'
import type { PasswordQueue } from './password-queue.ts'
import type { RefusalWork } from './refusal-work.ts'
import { anonymous, type User } from '../request/user.ts'

const keyBytes = 32

export interface AuthenticatorParts {
  readonly accounts: Accounts
  readonly passwords: PasswordQueue
  readonly lockout: Lockout
  readonly refusals: Pick<RefusalWork, 'missing'>
  /**
   * `afterLogin` receives the account and the password of each successful login. `isDue` is cheap and returns whether
   * `afterLogin` would do anything for this account.
   */
  readonly upgrades: { isDue(account: Account): boolean; afterLogin(account: Account, password: string): void }
  readonly clock: Clock
  readonly machine: Machine
  readonly random: Random
  readonly options: Pick<HttpOptions, 'credentialsMax' | 'passwordIterationsMin' | 'passwordIterationsMax'>
}

/** A request with credentials. */
export interface Client {
  /** Address of the client. */
  readonly clientAddress: string
  readonly requestId: string
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal
}

/** A login with a name and a password. */
export interface Login extends BasicCredentials {
  readonly client: Client
  /** The second factor, which may be empty. Null: the credentials cannot have one. */
  readonly token: string | null
}

/** The outcome of a check. */
interface Verified {
  readonly name: string
  /** The account that was checked; null: there was none. */
  readonly account: Account | null
  /** Null: the password was wrong, or there was no account. */
  readonly user: User | null
}

interface RunningCheck {
  readonly account: Account | null
  /** Null: the account is no longer the present one. */
  readonly outcome: Promise<Verified | null>
}

export class Authenticator {
  readonly #parts: AuthenticatorParts
  readonly #key: string
  readonly #verified: BoundedMap<string, Verified>
  readonly #running = new Map<string, RunningCheck>()
  readonly #tokens: OneTimePasswords
  /** They have precedence when passwords wait. */
  readonly #knownClients: KnownClients

  constructor(parts: AuthenticatorParts) {
    this.#parts = parts
    this.#key = Buffer.from(parts.random.bytes(keyBytes)).toString('hex')
    this.#verified = new BoundedMap(parts.options.credentialsMax)
    this.#tokens = new OneTimePasswords(parts.clock, parts.options.credentialsMax)
    this.#knownClients = new KnownClients(parts.options.credentialsMax)
  }

  /**
   * Returns the user, synchronously when the credentials and the account are cached.
   *
   * @throws ApiError `unauthorized` for a wrong name or password and for an account with conflicts, `forbidden` for a
   * locked account and for an iteration count outside the server's bounds, `bad_request` for a malformed header
   */
  authenticate(authorization: string | undefined, client: Client): User | Promise<User> {
    if (authorization === undefined) return anonymous
    const { accounts, upgrades } = this.#parts
    const fingerprint = this.#fingerprint('header', authorization)
    const known = this.#verified.get(fingerprint)
    if (known !== undefined && known.user !== null && accounts.current(known.name) === known.account) {
      this.#parts.lockout.check(this.#attemptOf(client, known.name, known.account))
      this.#requireIterations(known.account)
      this.#knownClients.addCached(client.clientAddress, known.name)
      // The header is parsed only when the password is needed.
      if (upgrades.isDue(known.account!)) {
        upgrades.afterLogin(known.account!, parseBasicCredentials(authorization)!.password)
      }
      return known.user
    }
    const credentials = parseBasicCredentials(authorization)
    return credentials === null ? anonymous : this.#authenticate(fingerprint, { ...credentials, client, token: null })
  }

  /**
   * Returns the account with that name and password, and the token if the account needs one, or null.
   * @throws ApiError as `authenticate`, and `service_unavailable` when too many password checks are waiting
   */
  async login(login: Login): Promise<Account | null> {
    const fingerprint = this.#fingerprint('login', JSON.stringify([login.name, login.password]))
    const since = this.#parts.clock.monotonic()
    for (let isLast = false; ; isLast = true) {
      const { account, user } = await this.#check(fingerprint, login)
      if (account === null || user === null) return null
      const { oneTimeSecret } = account
      if (oneTimeSecret === null) return account
      let isOutdated = false
      const attempt = this.#attemptOf(login.client, login.name, account)
      const isAccepted = await this.#parts.lockout.watch(attempt, async () => {
        if (this.#tokens.use(account.user.name, oneTimeSecret, login.token ?? '')) return true
        return isOutdated = await this.#isOutdated(login.name, account, isLast ? null : since)
      })
      if (isOutdated) continue
      if (isAccepted) this.#knownClients.add(login.client.clientAddress, login.name)
      return isAccepted ? account : null
    }
  }

  /** Logins have fingerprints of their own: no header has the outcome of a login, which needs a token besides. */
  #fingerprint(kind: 'header' | 'login', credentials: string): string {
    return hash('sha256', `${this.#key}${kind} ${credentials}`, 'base64')
  }

  async #authenticate(fingerprint: string, login: Login): Promise<User> {
    return (await this.#check(fingerprint, login)).user ?? refuse()
  }

  /** Checks credentials, and once more when another node has changed the account that refused them. */
  async #check(fingerprint: string, login: Login): Promise<Verified> {
    const since = this.#parts.clock.monotonic()
    for (let isLast = false; ; isLast = true) {
      const account = await this.#parts.accounts.open(login.name)
      const verified = await this.#checkAgainst(account, fingerprint, login, isLast ? null : since)
      if (verified !== null) return verified
    }
  }

  /**
   * Verifies the same credentials once for requests that come together.
   *
   * @param since when the check began; null: a refusal needs no confirmation
   * @returns null when the account is no longer the present one
   */
  async #checkAgainst(
    account: Account | null, fingerprint: string, login: Login, since: number | null,
  ): Promise<Verified | null> {
    const known = this.#verified.get(fingerprint)
    if (known?.account === account) return this.#confirmed(known, login, since)
    const running = this.#running.get(fingerprint)
    if (running?.account === account) return this.#share(running.outcome, account, fingerprint, login, since)
    const check = { account, outcome: this.#verify(fingerprint, login, account, since) }
    this.#running.set(fingerprint, check)
    try {
      return await check.outcome
    } finally {
      if (this.#running.get(fingerprint) === check) this.#running.delete(fingerprint)
    }
  }

  /** Waits for the check of another request, which ends when its client disconnects. */
  async #share(
    outcome: Promise<Verified | null>, account: Account | null, fingerprint: string, login: Login, since: number | null,
  ): Promise<Verified | null> {
    try {
      const verified = await outcome
      return verified === null ? null : this.#repeat(verified, login.client)
    } catch (error) {
      if (!(error instanceof ClientGoneError) || login.client.signal.aborted) throw error
      return this.#checkAgainst(account, fingerprint, login, since)
    }
  }

  async #confirmed(known: Verified, { client, password }: Login, since: number | null): Promise<Verified | null> {
    this.#parts.lockout.check(this.#attemptOf(client, known.name, known.account))
    this.#requireIterations(known.account)
    if (known.user !== null) this.#parts.upgrades.afterLogin(known.account!, password)
    else if (await this.#isOutdated(known.name, known.account, since)) return null
    return this.#repeat(known, client)
  }

  async #isOutdated(name: string, account: Account | null, since: number | null): Promise<boolean> {
    return since !== null && await this.#parts.accounts.confirm(name, account, since) !== account
  }

  /** Returns an outcome to a client again. @throws ApiError `forbidden` when the account is locked for the client */
  #repeat(verified: Verified, client: Client): Verified {
    const attempt = this.#attemptOf(client, verified.name, verified.account)
    if (verified.user === null) {
      this.#parts.lockout.addFailure(attempt)
    } else {
      this.#parts.lockout.check(attempt)
      if (verified.account!.oneTimeSecret === null) this.#knownClients.addCached(attempt.address, attempt.name)
    }
    return verified
  }

  async #verify(
    fingerprint: string, { name, password, client, token }: Login, account: Account | null, since: number | null,
  ): Promise<Verified | null> {
    const { lockout, passwords } = this.#parts
    const { clientAddress, signal } = client
    const known = this.#knownClients.has(clientAddress, name)
    const source = { address: clientNetwork(clientAddress), name, known, signal }
    const needsToken = account !== null && account.oneTimeSecret !== null && token === null
    let isOutdated = false
    const right = await lockout.watch(this.#attemptOf(client, name, account), async () => {
      const isRight = await passwords.run(source, () => this.#isRight(password, account)) && !needsToken
      if (!isRight) isOutdated = await this.#isOutdated(name, account, since)
      // A refusal by an account that is not the present one does not count.
      return isRight || isOutdated
    })
    if (isOutdated) return null
    // Only whoever knows the password learns of conflicts, since their text shows that the user exists.
    if (right) requireNoConflicts(account!)
    const user: User | null = right ? { ...account!.user, handler: 'default' } : null
    const verified = { name, account, user }
    if (right) {
      if (account!.oneTimeSecret === null) this.#knownClients.add(clientAddress, name)
      this.#parts.upgrades.afterLogin(account!, password)
    }
    // Other names are those of nobody, and may be long.
    if (account !== null || isUserName(name)) this.#verified.set(fingerprint, verified)
    return verified
  }

  /** Does the same work for all wrong passwords, for unknown names too (`refusal-work`). */
  async #isRight(password: string, account: Account | null): Promise<boolean> {
    const { machine, refusals } = this.#parts
    const stored = account?.hash ?? null
    if (stored !== null && await verifyPassword(password, stored, machine, this.#bounds(account))) return true
    const salt = this.#key.slice(0, keyBytes)
    for (const [digest, rounds] of refusals.missing(stored)) {
      await machine.pbkdf2(password, salt, rounds, derivedKeyBytes[digest], digest)
    }
    return false
  }

  /** The bounds may have changed since the password was verified. @throws ApiError as `authenticate` */
  #requireIterations(account: Account | null): void {
    if (account !== null && account.hash !== null) requireIterations(account.hash, this.#bounds(account))
  }

  #attemptOf({ clientAddress: address, requestId }: Client, name: string, account: Account | null): Attempt {
    return { address, countedAs: this.#knownClients.countedAs(address, name), requestId, name, account }
  }

  #bounds(account: Account | null): IterationBounds {
    return account?.user.admin ? administratorBounds : this.#parts.options
  }
}

function refuse(): never {
  throw new ApiError('unauthorized', 'Name or password is incorrect.')
}
