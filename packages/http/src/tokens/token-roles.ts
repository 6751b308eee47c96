/** The roles that a token gives its user. */
import { isJsonObject } from '@sectional/core'
import { listedRoles } from '../request/user.ts'
import type { HttpOptions } from '../settings/http-options.ts'
import { claimOf, type Claims } from './token-claims.ts'
import { badToken } from './token-errors.ts'

/**
 * Returns the roles in the claim that the options name: an array of texts, or one text with commas. Without that claim
 * the user has no roles.
 *
 * @throws ApiError `bad_request` when the claim has another type
 */
export function rolesOf(
  claims: Claims, { rolesClaimName, rolesClaimPath }: Pick<HttpOptions, 'rolesClaimName' | 'rolesClaimPath'>,
): readonly string[] {
  const given = rolesClaimPath === undefined || rolesClaimPath === ''
    ? claimOf(claims, rolesClaimName)
    : nestedClaim(claims, rolesClaimPath)
  if (given === undefined) return []
  const roles = typeof given === 'string' ? listedRoles(given) : given
  if (!Array.isArray(roles) || !roles.every(isRole)) throw badToken('Malformed token')
  return roles
}

function nestedClaim(claims: Claims, path: string): unknown {
  const names = path.split(/(?<!\\)\./).map(name => name.replaceAll('\\.', '.'))
  return names.reduce<unknown>((value, name) => isJsonObject(value) ? claimOf(value, name) : undefined, claims)
}

function isRole(role: unknown): role is string {
  return typeof role === 'string' && role.isWellFormed()
}
