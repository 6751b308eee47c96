/** Hashes new passwords of users, as the configuration says, when it is their turn in the queue. */
import type { Machine, Random } from '@sectional/runtime'
import type { HttpOptions } from '../settings/http-options.ts'
import { derivedKeyBytes, digestOf, simpleHash, type PasswordHash } from './password-hash.ts'
import type { PasswordQueue, PasswordSource } from './password-queue.ts'

export interface PasswordHasherParts {
  readonly passwords: PasswordQueue
  readonly machine: Machine
  readonly random: Random
  readonly options: Pick<
    HttpOptions,
    'passwordScheme' | 'passwordDigest' | 'passwordIterations' | 'passwordIterationsMin' | 'passwordIterationsMax'
  >
}

/** The members of a user's document that a hash consists of. A document has none that are not in its hash. */
export type HashMembers = Readonly<Partial<Record<typeof hashMembers[number], string | number>>>

export const hashMembers = [
  'password_scheme', 'pbkdf2_prf', 'salt', 'iterations', 'derived_key', 'password_sha',
] as const

const saltBytes = 16

export class PasswordHasher {
  readonly #parts: PasswordHasherParts

  constructor(parts: PasswordHasherParts) {
    this.#parts = parts
  }

  /**
   * Returns the members of the hash, in the order of CouchDB.
   * @param salt by default a new one
   * @throws ApiError `service_unavailable` when too many passwords are waiting
   */
  async hash(password: string, source: PasswordSource, salt = this.#newSalt()): Promise<HashMembers> {
    const { passwords, machine, options } = this.#parts
    const { passwordScheme, passwordDigest: prf } = options
    if (passwordScheme === 'simple') {
      return { password_scheme: 'simple', salt, password_sha: simpleHash(password, salt) }
    }
    const digest = digestOf(prf)
    const iterations = this.#iterations()
    const derived = await passwords.run(
      source, () => machine.pbkdf2(password, salt, iterations, derivedKeyBytes[digest], digest),
    )
    return {
      password_scheme: 'pbkdf2', pbkdf2_prf: prf, salt, iterations, derived_key: Buffer.from(derived).toString('hex'),
    }
  }

  /**
   * Returns whether a hash has another scheme or digest than a new one, or fewer iterations. No hash is replaced by one
   * of the scheme `simple`, which would be weaker.
   */
  isOutdated(hash: PasswordHash): boolean {
    const { passwordScheme, passwordDigest } = this.#parts.options
    if (passwordScheme === 'simple') return false
    return hash.scheme !== 'pbkdf2' || hash.digest !== digestOf(passwordDigest) || hash.iterations < this.#iterations()
  }

  /** Returns the iterations of a new hash, which are within the bounds outside which logins are refused. */
  #iterations(): number {
    const { passwordIterations, passwordIterationsMin: min, passwordIterationsMax: max } = this.#parts.options
    return Math.min(Math.max(passwordIterations, min), max)
  }

  #newSalt(): string {
    return Buffer.from(this.#parts.random.bytes(saltBytes)).toString('hex')
  }
}
