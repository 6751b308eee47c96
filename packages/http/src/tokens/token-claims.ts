/** Checks the claims of a token (RFC 7519, section 4.1). */
import type { HttpOptions } from '../settings/http-options.ts'
import type { RequiredClaim } from '../settings/token-options.ts'
import type { TokenHeader } from './signed-token.ts'
import { badToken, unauthorizedToken } from './token-errors.ts'

export type Claims = Readonly<Record<string, unknown>>

export interface ClaimRules {
  readonly options: Pick<HttpOptions, 'requiredClaims' | 'tokenAudiences' | 'tokenIssuer' | 'clockToleranceSeconds'>
  /** Seconds since 1970. */
  readonly now: number
}

/** The order in which CouchDB checks. Other claims come between `exp` and `kid`. */
const checkedFirst = ['typ', 'iss', 'iat', 'nbf', 'exp']
const checkedLast = 'kid'

/**
 * Checks the claims that the options require.
 * @throws ApiError `bad_request` for a missing or wrong claim, `unauthorized` outside the token's time
 */
export function checkRequiredClaims(claims: Claims, header: TokenHeader, rules: ClaimRules): void {
  for (const required of rules.options.requiredClaims.toSorted((a, b) => rank(a) - rank(b))) {
    if (!isOfHeader(required, header)) checkRequired(claims, required, rules)
  }
}

/**
 * Checks the issuer and the audience. A token whose key was fetched from the issuer needs `exp`, and its `nbf` is
 * always checked.
 *
 * @throws ApiError as `checkRequiredClaims`
 */
export function checkIssuedClaims(claims: Claims, isFetchedKey: boolean, rules: ClaimRules): void {
  const { tokenAudiences, tokenIssuer } = rules.options
  if (tokenIssuer !== '') checkRequired(claims, { name: 'iss', value: tokenIssuer }, rules)
  if (tokenAudiences.length > 0) checkAudience(claims, tokenAudiences)
  if (!isFetchedKey) return
  checkRequired(claims, { name: 'exp', value: undefined }, rules)
  if (claimOf(claims, 'nbf') !== undefined) checkTime(claims, 'nbf', rules)
}

function rank({ name }: RequiredClaim): number {
  if (name === checkedLast) return checkedFirst.length + 1
  const at = checkedFirst.indexOf(name)
  return at < 0 ? checkedFirst.length : at
}

/** Checks parameters of the header, which can be required like claims. Returns false for the name of a claim. */
function isOfHeader({ name, value }: RequiredClaim, { algorithm, keyId, type }: TokenHeader): boolean {
  switch (name) {
    case 'alg':
      if (value !== undefined && value !== algorithm) throw badToken('Invalid alg header parameter')
      return true
    case 'kid':
      if (keyId === undefined) throw badToken('Missing kid claim')
      if (value !== undefined && value !== keyId) throw badToken('Invalid kid claim')
      return true
    case 'typ':
      if (type === undefined) throw badToken('Missing typ header parameter')
      if (type !== (value ?? 'JWT')) throw badToken('Invalid typ header parameter')
      return true
    default: return false
  }
}

function checkRequired(claims: Claims, { name, value }: RequiredClaim, rules: ClaimRules): void {
  const given = claimOf(claims, name)
  if (given === undefined) throw badToken(`Missing ${name} claim`)
  if (name === 'exp' || name === 'nbf' || name === 'iat') checkTime(claims, name, rules)
  if (value !== undefined && !hasRequiredValue(name, given, value)) throw badToken(`Invalid ${name} claim`)
}

function checkAudience(claims: Claims, audiences: readonly string[]): void {
  const given = claimOf(claims, 'aud')
  if (given === undefined) throw badToken('Missing aud claim')
  if (!audiences.some(audience => hasValue(given, audience))) throw badToken('Invalid aud claim')
}

/** A token has one issuer; other claims, such as groups, may be arrays. */
function hasRequiredValue(name: string, given: unknown, value: string): boolean {
  return name === 'iss' ? given === value : hasValue(given, value)
}

/** Whether a claim is the text, or an array that contains it. */
function hasValue(given: unknown, value: string): boolean {
  return given === value || (Array.isArray(given) && given.includes(value))
}

/** Of `iat` only the type is checked: an integer. */
function checkTime(claims: Claims, name: 'exp' | 'nbf' | 'iat', { options, now }: ClaimRules): void {
  const time = claimOf(claims, name)
  const isValid = name === 'iat' ? Number.isInteger(time) : Number.isFinite(time)
  if (typeof time !== 'number' || !isValid) throw badToken(`Invalid ${name} claim`)
  const tolerance = options.clockToleranceSeconds
  if (name === 'exp' && time + tolerance <= now) throw unauthorizedToken('exp not in future')
  if (name === 'nbf' && time - tolerance > now) throw unauthorizedToken('nbf not in past')
}

/** @throws ApiError when the token names no user */
export function userNameOf(claims: Claims): string {
  const name = claimOf(claims, 'sub')
  if (name === undefined) throw unauthorizedToken('Token missing sub claim.')
  if (typeof name !== 'string' || name === '' || !name.isWellFormed()) throw badToken('Invalid sub claim')
  return name
}

/** Returns undefined for a claim that the token does not have. */
export function claimOf(claims: Claims, name: string): unknown {
  return Object.hasOwn(claims, name) ? claims[name] : undefined
}
