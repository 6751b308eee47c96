/** The account of a user: what a document of the users database says about name, roles and password. */
import { ApiError, isJsonObject, NamedMembers } from '@sectional/core'
import {
  accountBytesMax, hashTextLengthMax, userIdPrefix, userNameBytesMax, type OpenedDocument,
} from '@sectional/cluster'
import type { PasswordDigest } from '@sectional/runtime'
import { readOneTimeSecret, type OneTimeSecret } from './one-time-passwords.ts'
import type { PasswordHash } from './password-hash.ts'
import { hashMembers } from './password-hasher.ts'
import type { User } from '../request/user.ts'

/** An account does not change: an edit of the document or of the configuration makes another object. */
export interface Account {
  readonly user: User & { readonly name: string }
  /** Null: nobody can log in with this account. */
  readonly hash: PasswordHash | null
  /** Null: no second factor is needed. */
  readonly oneTimeSecret: OneTimeSecret | null
  /** True when the document of the user has conflicts. Nobody can log in until they are resolved. */
  readonly isConflicted: boolean
}

const digests: Readonly<Record<string, PasswordDigest>> = {
  sha: 'sha1', sha1: 'sha1', sha224: 'sha224', sha256: 'sha256', sha384: 'sha384', sha512: 'sha512',
}
/** A key of 64 bytes at most: PBKDF2 repeats all its iterations for each block of the key. */
const derivedKey = /^(?:[0-9a-f]{2}){1,64}$/i

const accountMembers = new NamedMembers(['roles', 'totp', ...hashMembers])

/** Returns the account of a document that is not deleted. Its other members are skipped. */
export function* accountOf(name: string, { leaves, body }: OpenedDocument): Generator<void, Account> {
  const text = body === undefined ? null : yield* accountMembers.only(body)
  // A larger account was written before the rules, which refuse it. It has no hash and no roles.
  const document: unknown = text === null || text.length > accountBytesMax ? {} : JSON.parse(text.toString('utf8'))
  const members = isJsonObject(document) ? document : {}
  const roles = Array.isArray(members['roles']) ? members['roles'].filter(mayHaveRole) : []
  const hash = hashOf(members)
  return {
    user: Object.freeze({ name, roles: Object.freeze(roles), admin: false, ...hash && { salt: hash.salt } }),
    hash,
    oneTimeSecret: readOneTimeSecret(members['totp']),
    isConflicted: leaves.filter(({ deleted }) => !deleted).length > 1,
  }
}

/** Ignores system roles, which the rules of the database refuse, in documents that were written before the rules. */
function mayHaveRole(role: unknown): role is string {
  return typeof role === 'string' && (!role.startsWith('_') || role === '_metrics')
}

/**
 * A salt that has no effect: HMAC fills keys with zero bytes. The session of such a user would be signed with the
 * secret alone, like the tokens of proxy authentication, so the user could make a token of it.
 */
const emptySalt = /^\0*$/

/** Returns null without a password, and when the user needs a second factor that cannot be checked. */
function hashOf(members: Record<string, unknown>): PasswordHash | null {
  const { password_scheme: scheme = 'simple', salt, iterations, pbkdf2_prf: prf = 'sha', totp } = members
  const derived = members[scheme === 'simple' ? 'password_sha' : 'derived_key']
  if (totp !== undefined && readOneTimeSecret(totp) === null) return null
  if (typeof salt !== 'string' || salt.length > hashTextLengthMax || emptySalt.test(salt)) return null
  if (typeof derived !== 'string' || !derivedKey.test(derived)) return null
  if (scheme === 'simple') return { scheme, derived, salt }
  if (scheme !== 'pbkdf2' && scheme !== 'simple+pbkdf2') return null
  const digest = typeof prf === 'string' && Object.hasOwn(digests, prf) ? digests[prf] : undefined
  if (!Number.isSafeInteger(iterations)) return null
  return { scheme, digest: digest ?? null, derived, salt, iterations: iterations as number }
}

/** @throws ApiError `unauthorized` */
export function requireNoConflicts({ isConflicted }: Account): void {
  if (!isConflicted) return
  throw new ApiError(
    'unauthorized',
    'User document conflicts must be resolved before the document is used for authentication purposes.',
  )
}

/** Returns false for names that no user can have, for which no document needs to be read. */
export function isUserName(name: string): boolean {
  return name !== '' && !name.startsWith('_') && !name.includes(':') && name.isWellFormed()
    && Buffer.byteLength(name) <= userNameBytesMax
}

/** Returns the name of the user to whom a document belongs, or null for other documents. */
export function ownerOf(id: string): string | null {
  return id.startsWith(userIdPrefix) ? id.slice(userIdPrefix.length) : null
}
