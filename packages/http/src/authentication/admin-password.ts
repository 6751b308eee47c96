/**
 * Creates and parses the password hashes of section `[admins]`, which have three forms
 * (docs/reference/security.md#authentication).
 */
import { createHmac } from 'node:crypto'
import type { Machine, PasswordDigest, Random } from '@sectional/runtime'
import type { PasswordHash } from './password-hash.ts'

const pbkdf2Form = /^-pbkdf2(?::(sha|sha224|sha256|sha384|sha512))?-([0-9a-f]+),([^,]*),(\d{1,9})$/
const hashedForm = /^-hashed-([0-9a-f]{40}),([^,]*)$/
const newHashBytes = 32
const saltBytes = 16

/** Parses a stored hash. Returns null when the text is a plain password. */
export function parseAdminHash(stored: string): PasswordHash | null {
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
