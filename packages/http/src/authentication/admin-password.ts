/**
 * Creates and verifies the password hashes of section `[admins]`, which have three forms
 * (docs/reference/security.md#authentication).
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { ApiError } from '@sectional/core'
import type { Machine, PasswordDigest, Random } from '@sectional/runtime'

export type AdminHash =
  | {
    readonly scheme: 'pbkdf2'
    readonly digest: PasswordDigest
    readonly derived: string
    readonly salt: string
    readonly iterations: number
  }
  | { readonly scheme: 'simple'; readonly derived: string; readonly salt: string }

const pbkdf2Form = /^-pbkdf2(?::(sha|sha224|sha256|sha384|sha512))?-([0-9a-f]+),([^,]*),(\d{1,9})$/
const hashedForm = /^-hashed-([0-9a-f]{40}),([^,]*)$/
const newHashBytes = 32
const saltBytes = 16

/** Parses a stored hash. Returns null when the text is a plain password. */
export function parseAdminHash(stored: string): AdminHash | null {
  const pbkdf2 = pbkdf2Form.exec(stored)
  if (pbkdf2 !== null) {
    const [, prf, derived, salt, iterations] = pbkdf2 as unknown as [string, string | undefined, string, string, string]
    const digest = prf === undefined || prf === 'sha' ? 'sha1' : prf as PasswordDigest
    return { scheme: 'pbkdf2', digest, derived, salt, iterations: Number(iterations) }
  }
  const hashed = hashedForm.exec(stored)
  return hashed === null ? null : { scheme: 'simple', derived: hashed[1]!, salt: hashed[2]! }
}

/** Parameters for hashing new passwords. */
export interface AdminHashing {
  readonly iterations: number
  readonly machine: Machine
  readonly random: Random
  /** The secret that all nodes of the cluster share; empty on a node without a cluster. */
  readonly clusterSecret: string
}

/**
 * Hashes a password in the `-pbkdf2:sha256-` form. Sessions are signed with the salt and must be valid on every node,
 * so nodes that share a secret derive the same salt from the same name and password. Different passwords get different
 * salts.
 */
export async function hashAdminPassword(
  name: string, password: string, { iterations, machine, random, clusterSecret }: AdminHashing,
): Promise<string> {
  const salt = clusterSecret === '' ? Buffer.from(random.bytes(saltBytes)).toString('hex')
    : createHmac('sha256', clusterSecret).update(JSON.stringify(['administrator', name, password])).digest('hex')
      .slice(0, 2 * saltBytes)
  const derived = await machine.pbkdf2(password, salt, iterations, newHashBytes, 'sha256')
  return `-pbkdf2:sha256-${Buffer.from(derived).toString('hex')},${salt},${iterations}`
}

/**
 * Returns whether the password matches the hash.
 * @param iterationsMax hashes with more iterations are refused, so that a copied entry cannot block the thread pool
 * @throws ApiError `forbidden` for an iteration count outside the server's bounds
 */
export async function verifyAdminPassword(
  password: string, hash: AdminHash, machine: Machine, iterationsMax: number,
): Promise<boolean> {
  const expected = Buffer.from(hash.derived, 'hex')
  if (hash.scheme === 'simple') {
    return equal(createHash('sha1').update(password + hash.salt).digest(), expected)
  }
  if (hash.iterations > iterationsMax) throw new ApiError('forbidden', 'Iteration count is too high for this server')
  if (hash.iterations < 1) throw new ApiError('forbidden', 'Iteration count is too low for this server')
  return equal(await machine.pbkdf2(password, hash.salt, hash.iterations, expected.length, hash.digest), expected)
}

function equal(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.length > 0 && timingSafeEqual(left, right)
}
