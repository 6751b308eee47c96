/** Verifies the signature and the claims of a token, and finds the user whom it names. */
import { compactVerify } from 'jose'
import type { Clock } from '@sectional/runtime'
import { tokenUser, type User } from '../request/user.ts'
import type { HttpOptions } from '../settings/http-options.ts'
import type { ConfiguredKeys } from './configured-keys.ts'
import type { FetchedKeys } from './fetched-keys.ts'
import { readTokenHeader, readTokenPart } from './signed-token.ts'
import { familyOf, type KeyFamily } from './token-algorithms.ts'
import { checkClaims, claimOf, userNameOf } from './token-claims.ts'
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
   * @throws ApiError `bad_request` for a malformed token, an unknown key, a wrong signature, and a missing or wrong
   * claim; `unauthorized` for a token that has expired, is not valid yet, or names no user; `service_unavailable` when
   * the keys of the issuer cannot be downloaded
   */
  async verify(token: string): Promise<VerifiedToken> {
    const { keys, fetched, clock, options } = this.#parts
    const header = readTokenHeader(token, options.tokenAlgorithms)
    const family = familyOf(header.algorithm)!
    const configured = keys.find(family, header.keyId)
    const key = configured ?? (family === 'hmac' ? null : await fetched.find(header))
    if (key === null) throw badToken('Unknown kid')
    const payload = await verifySignature(token, key, header.algorithm, family)
    const claims = readTokenPart(payload)
    checkClaims(claims, header, { options, isFetchedKey: configured === null, now: clock.now() / 1000 })
    const user = tokenUser(userNameOf(claims), rolesOf(claims, options), 'jwt')
    const expires = claimOf(claims, 'exp')
    return { user, expiresAt: typeof expires === 'number' ? expires * 1000 : Infinity }
  }
}

type Key = Parameters<typeof compactVerify>[1]

/** Returns the payload. A key that does not suit the algorithm verifies nothing. */
async function verifySignature(token: string, key: Key, algorithm: string, family: KeyFamily): Promise<Uint8Array> {
  try {
    return (await compactVerify(token, key, { algorithms: [algorithm] })).payload
  } catch {
    throw badToken(family === 'hmac' ? 'Bad HMAC' : 'Bad signature')
  }
}
