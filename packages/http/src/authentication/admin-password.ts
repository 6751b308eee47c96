/**
 * Creates and parses the password hashes of section `[admins]`, which have three forms
 * (docs/reference/security.md#authentication).
 */
import { createHmac } from 'node:crypto'
import type { Machine, PasswordDigest, Random } from '@sectional/runtime'
import type { PasswordHash } from './password-hash.ts'

/** A key of 16 to 64 bytes: many passwords have the same short key, and a long one takes PBKDF2 many times as long. */
const pbkdf2Form = /^-pbkdf2(?::(sha|sha224|sha256|sha384|sha512))?-((?:[0-9a-f]{2}){16,64}),([^,]*),(\d{1,9})$/
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
 * Hashes a password of the configuration files in the `-pbkdf2:sha256-` form. Sessions are signed with the salt and
 * must be valid on every node, so nodes that share a secret derive the same salt from the same name and password.
 * Different passwords get different salts.
 */
export function hashAdminPassword(name: string, password: string, hashing: AdminHashing): Promise<string> {
  return hashWith(saltOf(hashing, [name, password]), password, hashing)
}

/**
 * Hashes a password that a client sets. The salt is a new one at each change, also for the same password, so that all
 * sessions and the lockout end. It is derived from the previous hash: an administrator who is in the files of every
 * node is set on one node after the other, and has the same hash on all of them afterwards.
 *
 * @param previous the stored text that is replaced; null: there is none
 */
export function hashChangedPassword(
  name: string, password: string, previous: string | null, hashing: AdminHashing,
): Promise<string> {
  const isHashed = previous !== null && parseAdminHash(previous) !== null
  return hashWith(isHashed ? saltOf(hashing, [name, password, previous]) : randomSalt(hashing), password, hashing)
}

function saltOf(hashing: AdminHashing, parts: readonly string[]): string {
  const { clusterSecret } = hashing
  if (clusterSecret === '') return randomSalt(hashing)
  return createHmac('sha256', clusterSecret).update(JSON.stringify(['administrator', ...parts])).digest('hex')
    .slice(0, 2 * saltBytes)
}

function randomSalt({ random }: AdminHashing): string {
  return Buffer.from(random.bytes(saltBytes)).toString('hex')
}

async function hashWith(salt: string, password: string, { iterations, machine }: AdminHashing): Promise<string> {
  const derived = await machine.pbkdf2(password, salt, iterations, newHashBytes, 'sha256')
  return `-pbkdf2:sha256-${Buffer.from(derived).toString('hex')},${salt},${iterations}`
}
