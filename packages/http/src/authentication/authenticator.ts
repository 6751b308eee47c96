/**
 * Finds the user of an Authorization header. Verifying a password costs about 100 ms of a thread, so the result is
 * cached under a keyed hash of the header. A cached result is valid only while the administrator's stored hash is the
 * one it was verified against.
 */
import { hash } from 'node:crypto'
import { ApiError } from '@sectional/core'
import type { Machine, Random } from '@sectional/runtime'
import { overloaded } from '../request/admission.ts'
import { BoundedMap } from './bounded-map.ts'
import type { Configuration } from '../settings/configuration.ts'
import type { HttpOptions } from '../settings/http-options.ts'
import { parseAdminHash, verifyAdminPassword } from './admin-password.ts'
import { parseBasicCredentials, type BasicCredentials } from './basic-credentials.ts'
import { anonymous, type User } from '../request/user.ts'

const waitingChecksMax = 100
const keyBytes = 32

type AuthenticatorOptions = Pick<HttpOptions, 'credentialsMax' | 'passwordChecksMax' | 'passwordIterationsMax'>

interface Verified { readonly name: string; readonly storedHash: string; readonly user: User | null }

export class Authenticator {
  readonly #configuration: Configuration
  readonly #machine: Machine
  readonly #options: AuthenticatorOptions
  readonly #key: string
  readonly #verified: BoundedMap<string, Verified>
  readonly #running = new Map<string, Promise<User | null>>()
  readonly #waiting: (() => void)[] = []
  #checks = 0

  constructor(configuration: Configuration, machine: Machine, random: Random, options: AuthenticatorOptions) {
    this.#configuration = configuration
    this.#machine = machine
    this.#options = options
    this.#key = Buffer.from(random.bytes(keyBytes)).toString('hex')
    this.#verified = new BoundedMap(options.credentialsMax)
  }

  /**
   * Returns the user, synchronously when the credentials are cached.
   * @throws ApiError `unauthorized` for a wrong name or password, `bad_request` for a malformed header
   */
  authenticate(authorization: string | undefined): User | Promise<User> {
    if (authorization === undefined) return anonymous
    const fingerprint = hash('sha256', this.#key + authorization, 'base64')
    const known = this.#verified.get(fingerprint)
    if (known !== undefined && this.#configuration.get('admins', known.name) === known.storedHash) {
      return known.user ?? refuse()
    }
    const credentials = parseBasicCredentials(authorization)
    return credentials === null ? anonymous : this.#check(fingerprint, credentials)
  }

  /**
   * Returns the administrator with that name and password, or null.
   * @throws ApiError `service_unavailable` when too many password checks are waiting
   */
  async login(name: string, password: string): Promise<User | null> {
    const fingerprint = hash('sha256', this.#key + JSON.stringify([name, password]), 'base64')
    const known = this.#verified.get(fingerprint)
    if (known !== undefined && this.#configuration.get('admins', name) === known.storedHash) return known.user
    return this.#checkOnce(fingerprint, { name, password })
  }

  async #check(fingerprint: string, credentials: BasicCredentials): Promise<User> {
    return await this.#checkOnce(fingerprint, credentials) ?? refuse()
  }

  async #checkOnce(fingerprint: string, credentials: BasicCredentials): Promise<User | null> {
    const running = this.#running.get(fingerprint)
    if (running !== undefined) return running
    const check = this.#verify(fingerprint, credentials)
    this.#running.set(fingerprint, check)
    try {
      return await check
    } finally {
      this.#running.delete(fingerprint)
    }
  }

  async #verify(fingerprint: string, { name, password }: BasicCredentials): Promise<User | null> {
    const storedHash = this.#configuration.get('admins', name)
    const parsed = storedHash === undefined ? null : parseAdminHash(storedHash)
    if (storedHash === undefined || parsed === null) return null
    await this.#begin()
    try {
      const right = await verifyAdminPassword(password, parsed, this.#machine, this.#options.passwordIterationsMax)
      const user: User | null = right ? { name, roles: ['_admin'], admin: true, handler: 'default' } : null
      this.#verified.set(fingerprint, { name, storedHash, user })
      return user
    } finally {
      this.#end()
    }
  }

  async #begin(): Promise<void> {
    if (this.#checks < this.#options.passwordChecksMax) {
      this.#checks++
      return
    }
    if (this.#waiting.length >= waitingChecksMax) throw overloaded('password checks')
    await new Promise<void>(resolve => { this.#waiting.push(resolve) })
  }

  #end(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#checks--
    else next()
  }
}

function refuse(): never {
  throw new ApiError('unauthorized', 'Name or password is incorrect.')
}
