/**
 * The three forms in which `[admins]` holds a password (docs/reference/security.md#authentication), and how one is
 * made and verified.
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

/** null: the text is no hash but a password in plain text. */
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

/** How new passwords are hashed. */
export interface AdminHashing {
  readonly iterations: number
  readonly machine: Machine
  readonly random: Random
  /** What the nodes of the cluster share; empty: this node is alone. */
  readonly clusterSecret: string
}

/**
 * The `-pbkdf2:sha256-` form of a plain password. Nodes that share a secret make the same salt of the same name and
 * password, and no two passwords share one: sessions are signed with the salt, and shall hold on every node.
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
 * @param iterationsMax a hash that asks for more is refused, so that a copied entry cannot stall the thread pool
 * @throws ApiError `forbidden` for iteration counts outside the server's bounds
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
