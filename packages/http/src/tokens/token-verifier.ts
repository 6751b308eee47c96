/** Verifies the signature and the claims of a token, and finds the user whom it names. */
import { compactVerify } from 'jose'
import type { Clock } from '@sectional/runtime'
import { tokenUser, type User } from '../request/user.ts'
import type { HttpOptions } from '../settings/http-options.ts'
import type { ConfiguredKeys } from './configured-keys.ts'
import type { FetchedKeys } from './fetched-keys.ts'
import { readToken } from './signed-token.ts'
import { familyOf, type KeyFamily } from './token-algorithms.ts'
import { checkIssuedClaims, checkRequiredClaims, claimOf, userNameOf } from './token-claims.ts'
import { badToken } from './token-errors.ts'
import { rolesOf } from './token-roles.ts'

export interface TokenVerifierParts {
  readonly keys: Pick<ConfiguredKeys, 'find'>
  readonly fetched: Pick<FetchedKeys, 'find'>
  readonly clock: Pick<Clock, 'now'>
  readonly options: HttpOptions
}

export interface VerifiedToken {
  readonly user: User
  /** Milliseconds since 1970 at which the token expires; Infinity when it has no such time. */
  readonly expiresAt: number
}

export class TokenVerifier {
  readonly #parts: TokenVerifierParts

  constructor(parts: TokenVerifierParts) {
    this.#parts = parts
  }

  /**
   * Verifies a token. The claims that are required are checked first, as in CouchDB, so that one that has expired needs
   * no key.
   *
   * @throws ApiError `bad_request` for a malformed token, an unknown key, a wrong signature, and a missing or wrong
   * claim; `unauthorized` for a token that has expired, is not valid yet, or names no user; `service_unavailable` when
   * the keys of the issuer cannot be downloaded
   */
  async verify(token: string): Promise<VerifiedToken> {
    const { keys, fetched, clock, options } = this.#parts
    const { header, claims } = readToken(token, options.tokenAlgorithms)
    const rules = { options, now: clock.now() / 1000 }
    checkRequiredClaims(claims, header, rules)
    const family = familyOf(header.algorithm)!
    const configured = keys.find(family, header.keyId)
    const key = configured ?? (family === 'hmac' ? null : await fetched.find(header))
    if (key === null) throw badToken('Unknown kid')
    await verifySignature(token, key, header.algorithm, family)
    checkIssuedClaims(claims, configured === null, rules)
    const roles = rolesOf(claims, options)
    const user = tokenUser(userNameOf(claims), roles, 'jwt')
    const expires = claimOf(claims, 'exp')
    return { user, expiresAt: typeof expires === 'number' ? expires * 1000 : Infinity }
  }
}

type Key = Parameters<typeof compactVerify>[1]

const unpaddedSignature = /\.[\w-]*$/

/** A key that does not suit the algorithm verifies nothing. */
async function verifySignature(token: string, key: Key, algorithm: string, family: KeyFamily): Promise<void> {
  try {
    if (!unpaddedSignature.test(token)) throw new Error('the signature is not in base64url')
    await compactVerify(token, key, { algorithms: [algorithm] })
  } catch {
    throw badToken(family === 'hmac' ? 'Bad HMAC' : 'Bad signature')
  }
}
