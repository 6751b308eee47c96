/**
 * The work of refusing a password. For each digest, a refusal computes as many rounds as the costliest hash with that
 * digest that this node knows of, whether the name exists or not. So the time of a refusal shows neither which names
 * exist nor how their passwords are hashed, although hashes differ and digests are not equally fast.
 *
 * Known are the hashes of administrators, those of accounts that were read within the last hour, and that of new
 * passwords. The first refusal of an account with a costlier hash takes longer than those before it.
 */
import type { Clock, PasswordDigest } from '@sectional/runtime'
import type { Configuration } from '../settings/configuration.ts'
import { iterationsMax } from '../settings/authentication-options.ts'
import type { HttpOptions } from '../settings/http-options.ts'
import { parseAdminHash } from './admin-password.ts'
import {
  administratorBounds, derivedKeyBytes, digestOf, type IterationBounds, type PasswordHash,
} from './password-hash.ts'

/** Time after which hashes that were not read again may be forgotten, in milliseconds. */
const rememberedMs = 3_600_000
/** Most rounds of a user's hash that all refusals repeat: more of them can only be written by administrators. */
const userRoundsMax = 1_000_000

export interface RefusalWorkParts {
  readonly clock: Pick<Clock, 'monotonic'>
  readonly configuration: Pick<Configuration, 'sections'>
  readonly options: Pick<
    HttpOptions, 'passwordDigest' | 'passwordIterations' | 'passwordIterationsMin' | 'passwordIterationsMax'
  >
}

type Rounds = Map<PasswordDigest, number>

export class RefusalWork {
  readonly #parts: RefusalWorkParts
  /** The most rounds of hashes of users that were read since `#since`, and in the time before it. */
  #recent: Rounds = new Map()
  #earlier: Rounds = new Map()
  #since = -Infinity

  constructor(parts: RefusalWorkParts) {
    this.#parts = parts
  }

  /** Call this when the account of a user was read. */
  note(hash: PasswordHash | null): void {
    this.#forgetOld()
    if (hash !== null) raise(this.#recent, hash, this.#parts.options, userRoundsMax)
  }

  /** Returns the rounds that are missing after a check of the stored hash; null: nothing was checked. */
  missing(stored: PasswordHash | null): Rounds {
    const { configuration, options } = this.#parts
    this.#forgetOld()
    const rounds: Rounds = new Map(this.#earlier)
    for (const [digest, known] of this.#recent) rounds.set(digest, Math.max(known, rounds.get(digest) ?? 0))
    const fresh = digestOf(options.passwordDigest)
    rounds.set(fresh, Math.max(options.passwordIterations, rounds.get(fresh) ?? 0))
    for (const text of Object.values(configuration.sections()['admins'] ?? {})) {
      const hash = parseAdminHash(text)
      if (hash !== null) raise(rounds, hash, administratorBounds, iterationsMax)
    }
    const done = stored === null ? null : workOf(stored)
    if (done !== null) rounds.set(done.digest, (rounds.get(done.digest) ?? 0) - done.rounds)
    return new Map([...rounds].filter(([, left]) => left > 0).sort(([a], [b]) => a < b ? -1 : 1))
  }

  #forgetOld(): void {
    const now = this.#parts.clock.monotonic()
    if (now - this.#since < rememberedMs) return
    this.#earlier = now - this.#since < 2 * rememberedMs ? this.#recent : new Map()
    this.#recent = new Map()
    this.#since = now
  }
}

/** Raises the rounds to those of a hash within the bounds. The check of others is refused without work. */
function raise(rounds: Rounds, hash: PasswordHash, bounds: IterationBounds, roundsMax: number): void {
  const work = workOf(hash)
  if (work === null || hash.scheme === 'simple') return
  if (hash.iterations < bounds.passwordIterationsMin || hash.iterations > bounds.passwordIterationsMax) return
  rounds.set(work.digest, Math.max(Math.min(work.rounds, roundsMax), rounds.get(work.digest) ?? 0))
}

/** PBKDF2 repeats all its iterations for each block of the key. */
function workOf(hash: PasswordHash): { readonly digest: PasswordDigest; readonly rounds: number } | null {
  if (hash.scheme === 'simple' || hash.digest === null) return null
  const { digest, derived, iterations } = hash
  return { digest, rounds: iterations * Math.ceil(derived.length / 2 / derivedKeyBytes[digest]) }
}
