/**
 * Locks an account for a client that has sent too many wrong passwords (docs/reference/security.md#lockout).
 *
 * Failures are counted for each address (or IPv6 network), name and salt: other clients are not locked out, and a new
 * password, which has a new salt, ends the lock. The time begins with the first failure, and a right password does not
 * reset the count. Each node counts for itself.
 */
import { hash } from 'node:crypto'
import { ApiError } from '@sectional/core'
import type { Clock, Log } from '@sectional/runtime'
import type { HttpOptions } from '../settings/http-options.ts'
import type { Audit } from '../audit/audit.ts'
import type { Account } from './user-account.ts'
import { LockoutEntries, type LockoutEntry } from './lockout-entries.ts'

/** Longer names and salts are replaced by their hash, so that entries have a bounded size. */
const plainLengthMax = 128

export interface LockoutParts {
  readonly clock: Clock
  readonly log: Log
  readonly audit: Audit
  readonly options: Pick<HttpOptions, 'lockoutMode' | 'lockoutThreshold' | 'lockoutEntriesMax' | 'lockoutMs'>
}

/** Who tries to log in. */
export interface Attempt {
  /** Address of the client. */
  readonly address: string
  /** For whom wrong passwords are counted: this address, or the network of it (`KnownClients`). */
  readonly countedAs: string
  readonly requestId: string
  readonly name: string
  /** Null: there is no such account. */
  readonly account: Account | null
}

export class Lockout {
  readonly #parts: LockoutParts
  readonly #entries: LockoutEntries

  constructor(parts: LockoutParts) {
    this.#parts = parts
    this.#entries = new LockoutEntries(parts.options.lockoutEntriesMax)
  }

  /** @throws ApiError `forbidden` when the account is locked for this client */
  check(attempt: Attempt): void {
    if (this.#entries.size === 0 || this.#parts.options.lockoutMode !== 'enforce') return
    const entry = this.#find(attempt)
    if (entry !== undefined && this.#isFull(entry)) throw this.#locked(entry)
  }

  /**
   * Counts a wrong password that needed no check because it was checked before.
   * @throws ApiError as `check`
   */
  addFailure(attempt: Attempt): void {
    const { options: { lockoutMode: mode } } = this.#parts
    if (mode === 'off') return
    this.check(attempt)
    this.#count(attempt)
  }

  /**
   * Runs the check of a password or token, and counts it if that is wrong.
   * @throws ApiError as `check`, also when the checks that are running could lock the account
   */
  async watch(attempt: Attempt, check: () => Promise<boolean>): Promise<boolean> {
    const { options: { lockoutMode: mode } } = this.#parts
    if (mode === 'off') return check()
    const entry = this.#find(attempt) ?? this.#create(attempt)
    if (mode === 'enforce' && this.#isFull(entry)) throw this.#locked(entry)
    entry.checking++
    let right = true
    try {
      return right = await check()
    } finally {
      entry.checking--
      if (!right) this.#count(attempt)
      else if (entry.failures === 0 && entry.checking === 0 && this.#find(attempt) === entry) this.#delete(attempt)
    }
  }

  #count(attempt: Attempt): void {
    const { address, requestId, name } = attempt
    const { audit, log, options } = this.#parts
    const entry = this.#find(attempt) ?? this.#create(attempt)
    entry.failures++
    if (entry.failures !== options.lockoutThreshold) return
    const seconds = this.#secondsLeft(entry)
    log.warn({ peer: address, user: name.slice(0, plainLengthMax), failures: entry.failures, seconds },
      options.lockoutMode === 'enforce' ? 'an account is locked for a client after wrong passwords'
        : 'a client has sent many wrong passwords for an account')
    audit.record({
      event: 'account_locked', user: name, address, requestId,
      details: { failures: entry.failures, seconds, refused: options.lockoutMode === 'enforce' },
    })
  }

  #isFull(entry: LockoutEntry): boolean {
    return entry.failures + entry.checking >= this.#parts.options.lockoutThreshold
  }

  /** The error says the same whether the password is right or wrong. */
  #locked(entry: LockoutEntry): ApiError {
    // While guesses are checked, one of them may be right.
    const isLocked = entry.failures >= this.#parts.options.lockoutThreshold
    return new ApiError('forbidden', 'Account is temporarily locked due to multiple authentication failures', {
      headers: { 'Retry-After': String(isLocked ? this.#secondsLeft(entry) : 1) },
    })
  }

  #secondsLeft(entry: LockoutEntry): number {
    return Math.ceil((entry.until - this.#parts.clock.monotonic()) / 1000)
  }

  #find(attempt: Attempt): LockoutEntry | undefined {
    const entry = this.#entries.get(attempt.countedAs, accountKey(attempt))
    if (entry === undefined || this.#parts.clock.monotonic() < entry.until) return entry
    this.#delete(attempt)
    return undefined
  }

  #create(attempt: Attempt): LockoutEntry {
    const now = this.#parts.clock.monotonic()
    const entry = { failures: 0, checking: 0, until: now + this.#parts.options.lockoutMs }
    this.#entries.add(attempt.countedAs, accountKey(attempt), entry, other =>
      other.checking > 0 || (this.#isFull(other) && now < other.until))
    return entry
  }

  #delete(attempt: Attempt): void {
    this.#entries.delete(attempt.countedAs, accountKey(attempt))
  }
}

function accountKey({ name, account }: Attempt): string {
  return `${bounded(name)}\n${bounded(account?.hash?.salt ?? '')}`
}

function bounded(text: string): string {
  return text.length <= plainLengthMax ? text : hash('sha256', text, 'base64')
}
