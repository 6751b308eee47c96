/**
 * Authentication by signed tokens in the Authorization header (docs/reference/authentication.md#jwt). The user of a
 * verified token is kept in memory under a keyed hash of the token, so that a request with a known token costs one
 * hash.
 */
import { hash } from 'node:crypto'
import type { Clock, Random } from '@sectional/runtime'
import { BoundedMap } from './bounded-map.ts'
import type { User } from '../request/user.ts'
import type { Configuration } from '../settings/configuration.ts'
import type { HttpOptions } from '../settings/http-options.ts'
import { bearerToken } from '../tokens/signed-token.ts'
import type { TokenVerifier } from '../tokens/token-verifier.ts'

const keyBytes = 32
/** Time after which a token is verified again, in milliseconds. */
const keptMs = 60_000

export interface TokenAuthenticationParts {
  readonly verifier: Pick<TokenVerifier, 'verify'>
  readonly configuration: Pick<Configuration, 'onChange'>
  readonly clock: Pick<Clock, 'now'>
  readonly random: Random
  readonly options: Pick<HttpOptions, 'credentialsMax'>
}

interface Kept {
  readonly user: User
  /** Milliseconds since 1970. Never later than the token expires. */
  readonly until: number
}

export class TokenAuthentication {
  readonly #parts: TokenAuthenticationParts
  readonly #key: string
  readonly #unsubscribe: () => void
  /** Empty after each change of the configuration, which may have changed keys or rules. */
  #kept: BoundedMap<string, Kept>

  constructor(parts: TokenAuthenticationParts) {
    this.#parts = parts
    this.#key = Buffer.from(parts.random.bytes(keyBytes)).toString('hex')
    this.#kept = new BoundedMap(parts.options.credentialsMax)
    this.#unsubscribe = parts.configuration.onChange(() => { this.forget() })
  }

  stop(): void {
    this.#unsubscribe()
  }

  /** Forgets all tokens. Call this when keys have changed. */
  forget(): void {
    this.#kept = new BoundedMap(this.#parts.options.credentialsMax)
  }

  /**
   * Returns the user of the token in an Authorization header, synchronously when the token is known; null without one.
   * @throws ApiError as `TokenVerifier.verify`
   */
  find(authorization: string | undefined): User | null | Promise<User> {
    const token = bearerToken(authorization)
    if (token === null) return null
    const fingerprint = hash('sha256', this.#key + token, 'base64')
    const kept = this.#kept.get(fingerprint)
    return kept !== undefined && this.#parts.clock.now() < kept.until ? kept.user : this.#verify(token, fingerprint)
  }

  async #verify(token: string, fingerprint: string): Promise<User> {
    const kept = this.#kept
    const verifiedAt = this.#parts.clock.now()
    const { user, expiresAt } = await this.#parts.verifier.verify(token)
    // After a change of the configuration `#kept` is another map, so a result by the old keys is not used again.
    kept.set(fingerprint, { user, until: Math.min(expiresAt, verifiedAt + keptMs) })
    return user
  }
}
