/**
 * Time-based one-time passwords (TOTP, RFC 6238): the second factor of users whose document has the member `totp`. A
 * token is accepted in its own step of 30 s and in those before and after it, and only once on each node.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { isJsonObject } from '@sectional/core'
import type { Clock } from '@sectional/runtime'
import { BoundedMap } from './bounded-map.ts'

const stepSeconds = 30
/** Steps around the present one whose tokens are accepted, because clocks differ. */
const driftSteps = 1
const base32Digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
const digests = { sha: 'sha1', sha1: 'sha1', sha256: 'sha256', sha512: 'sha512' } as const
const keyLengthMax = 1024

export interface OneTimeSecret {
  readonly key: Uint8Array
  readonly digest: typeof digests[keyof typeof digests]
  /** Number of digits of a token. */
  readonly digits: number
}

/** Returns the secret in the member `totp` of a user's document, or null when it has another form. */
export function readOneTimeSecret(totp: unknown): OneTimeSecret | null {
  if (!isJsonObject(totp)) return null
  const { key, algorithm = 'sha', length = 6 } = totp
  const bytes = typeof key === 'string' ? decodeBase32(key) : null
  if (bytes === null || typeof algorithm !== 'string' || !Object.hasOwn(digests, algorithm)) return null
  if (typeof length !== 'number' || !Number.isInteger(length) || length < 6 || length > 9) return null
  return { key: bytes, digest: digests[algorithm as keyof typeof digests], digits: length }
}

export class OneTimePasswords {
  readonly #clock: Clock
  /** The steps whose tokens were used, by the name of the user. */
  readonly #used: BoundedMap<string, readonly number[]>

  /** @param usersMax number of users whose last tokens are remembered */
  constructor(clock: Clock, usersMax: number) {
    this.#clock = clock
    this.#used = new BoundedMap(usersMax)
  }

  /** Returns whether the token is right and was not used yet. Then it is used. */
  use(name: string, secret: OneTimeSecret, token: string): boolean {
    const present = Math.floor(this.#clock.now() / 1000 / stepSeconds)
    const steps = Array.from({ length: 2 * driftSteps + 1 }, (_, index) => present - driftSteps + index)
    const used = (this.#used.get(name) ?? []).filter(step => step >= present - driftSteps)
    // All are computed, so that the time does not show which one is right.
    const right = steps.filter(step => isEqual(tokenAt(secret, step), token))
    const step = right.find(candidate => !used.includes(candidate))
    if (step === undefined) return false
    this.#used.set(name, [...used, step])
    return true
  }
}

/** Returns the token of a step (RFC 4226, section 5.3). */
export function tokenAt({ key, digest, digits }: OneTimeSecret, step: number): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const mac = createHmac(digest, key).update(counter).digest()
  const offset = mac.at(-1)! & 0x0f
  const code = mac.readUInt32BE(offset) & 0x7fff_ffff
  return String(code % 10 ** digits).padStart(digits, '0')
}

function isEqual(expected: string, given: string): boolean {
  const [left, right] = [Buffer.from(expected), Buffer.from(given)]
  return left.length === right.length && timingSafeEqual(left, right)
}

/** Returns null for a text that is not Base32 (RFC 4648), or is empty or very long. */
function decodeBase32(text: string): Uint8Array | null {
  if (text.length > keyLengthMax) return null
  const digitsOnly = text.toUpperCase().replace(/=+$/, '')
  if (!/^[A-Z2-7]+$/.test(digitsOnly)) return null
  const bytes: number[] = []
  let bits = 0
  let value = 0
  for (const digit of digitsOnly) {
    value = (value << 5 | base32Digits.indexOf(digit)) & 0xfff
    bits += 5
    if (bits < 8) continue
    bits -= 8
    bytes.push(value >> bits & 0xff)
  }
  return bytes.length === 0 ? null : Uint8Array.from(bytes)
}
