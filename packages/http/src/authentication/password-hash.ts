/** Password hashes: how a stored one is verified, and how a new one is made. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { ApiError } from '@sectional/core'
import type { Machine, PasswordDigest } from '@sectional/runtime'
import { iterationsMax } from '../settings/authentication-options.ts'

export type PasswordHash =
  | {
    /** `simple+pbkdf2`: PBKDF2 of the hexadecimal text of the `simple` hash. */
    readonly scheme: 'pbkdf2' | 'simple+pbkdf2'
    /** Null: one that is not known. */
    readonly digest: PasswordDigest | null
    /** Hexadecimal. */
    readonly derived: string
    readonly salt: string
    readonly iterations: number
  }
  /** SHA-1 of the password followed by the salt. */
  | { readonly scheme: 'simple'; readonly derived: string; readonly salt: string }

/** Bytes of the derived key of a new hash. */
export const derivedKeyBytes: Readonly<Record<PasswordDigest, number>> = {
  sha1: 20, sha224: 28, sha256: 32, sha384: 48, sha512: 64,
}

/** Returns the digest of an option or a document, which call SHA-1 `sha`. */
export function digestOf(name: Exclude<PasswordDigest, 'sha1'> | 'sha'): PasswordDigest {
  return name === 'sha' ? 'sha1' : name
}

/** Hashes whose iteration counts are outside these bounds are refused. */
export interface IterationBounds { readonly passwordIterationsMin: number; readonly passwordIterationsMax: number }

/** The bounds for administrators. Those of the options do not apply, so that they cannot lock all of them out. */
export const administratorBounds: IterationBounds = { passwordIterationsMin: 1, passwordIterationsMax: iterationsMax }

/**
 * Returns whether the password matches the hash.
 * @throws ApiError `forbidden` for an unknown digest, and for an iteration count outside the server's bounds, so that a
 * copied hash cannot block the thread pool
 */
export async function verifyPassword(
  password: string, hash: PasswordHash, machine: Machine, bounds: IterationBounds,
): Promise<boolean> {
  const expected = Buffer.from(hash.derived, 'hex')
  if (hash.scheme === 'simple') return equal(Buffer.from(simpleHash(password, hash.salt), 'hex'), expected)
  const { iterations, salt, digest } = hash
  if (digest === null) throw new ApiError('forbidden', 'PRF is invalid')
  requireIterations(hash, bounds)
  const text = hash.scheme === 'pbkdf2' ? password : simpleHash(password, salt)
  return equal(await machine.pbkdf2(text, salt, iterations, expected.length, digest), expected)
}

/** @throws ApiError `forbidden` for an iteration count outside the server's bounds */
export function requireIterations(
  hash: PasswordHash, { passwordIterationsMin, passwordIterationsMax }: IterationBounds,
): void {
  if (hash.scheme === 'simple') return
  if (hash.iterations > passwordIterationsMax) {
    throw new ApiError('forbidden', 'Iteration count is too high for this server')
  }
  if (hash.iterations < Math.max(1, passwordIterationsMin)) {
    throw new ApiError('forbidden', 'Iteration count is too low for this server')
  }
}

/** Returns hexadecimal digits. */
export function simpleHash(password: string, salt: string): string {
  return createHash('sha1').update(password + salt).digest('hex')
}

function equal(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.length > 0 && timingSafeEqual(left, right)
}
