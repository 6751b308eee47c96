/**
 * The accounts of administrators and users by their names. Administrators, from section `[admins]`, take precedence. An
 * administrator who has a user document too has the roles of the document in addition. Their rights do not depend
 * on it, so an administrator never waits long for the document, and may have the roles of an older revision.
 *
 * The accounts of users are read from the users database and kept in memory, so that a request with credentials
 * normally reads nothing. An account is used for `confirmMs` after the start of its reading. When this node writes the
 * document of the user, the account is read again at the next request. Writes through other nodes take effect when the
 * time has passed, or when somebody would be refused because of an older account (`confirm`).
 */
import { ApiError } from '@sectional/core'
import {
  userIdPrefix, usersDatabase, type ControlPlane, type Coordinator, type DatabaseRecord,
} from '@sectional/cluster'
import { sleep, type Clock, type Turns } from '@sectional/runtime'
import { parseAdminHash } from './admin-password.ts'
import { BoundedMap } from './bounded-map.ts'
import type { Configuration } from '../settings/configuration.ts'
import type { RefusalWork } from './refusal-work.ts'
import { accountOf, isUserName, type Account } from './user-account.ts'

/** Time for which an account that was read is used, in milliseconds. */
const confirmMs = 3_000
/** Time in which the account of one name is read once at most to confirm refusals, in milliseconds. */
const confirmedMs = 500
/** Time for which the login of an administrator waits for the document, in milliseconds. */
const administratorWaitMs = 1_000

export interface AccountsParts {
  readonly configuration: Configuration
  readonly control: Pick<ControlPlane, 'state' | 'confirmAbsent'>
  readonly coordinator: Pick<Coordinator, 'openDocument'>
  readonly clock: Clock
  readonly turns: Turns
  /** Largest number of accounts that are kept in memory. */
  readonly accountsMax: number
  /** Receives the hash of each account that was read. */
  readonly refusals: Pick<RefusalWork, 'note'>
}

interface Entry {
  /** The database of which the account was read; undefined: there was none. */
  readonly incarnation: string | undefined
  /** Monotonic milliseconds at which the reading began. */
  readonly readAt: number
  /** The leaves of the document. The account is the same object as long as they do not change. */
  readonly revisions: string
  /** Null: there is no such user. */
  readonly account: Account | null
}

interface Administrator {
  readonly stored: string
  readonly document: Account | null
  readonly account: Account | null
}

interface Reading { readonly incarnation: string | undefined; result?: Promise<Account | null> }

export class Accounts {
  readonly #parts: AccountsParts
  readonly #entries: BoundedMap<string, Entry>
  /** Readings whose results are still wanted. `forget` removes one, so that its result is not kept. */
  readonly #readings = new Map<string, Reading>()
  readonly #administrators: BoundedMap<string, Administrator>
  /** Administrators whose document could not be read, with the monotonic milliseconds until which it is not tried. */
  readonly #unreadable: BoundedMap<string, number>
  /** Monotonic milliseconds at which refusals of a name were last confirmed. */
  readonly #confirmed: BoundedMap<string, number>

  constructor(parts: AccountsParts) {
    this.#parts = parts
    this.#entries = new BoundedMap(parts.accountsMax)
    this.#administrators = new BoundedMap(parts.accountsMax)
    this.#unreadable = new BoundedMap(parts.accountsMax)
    this.#confirmed = new BoundedMap(parts.accountsMax)
  }

  /** Returns the account if it is known without a wait, null if there is none, and undefined if it must be read. */
  current(name: string): Account | null | undefined {
    const stored = this.#parts.configuration.get('admins', name)
    if (stored !== undefined) return this.#currentAdministrator(name, stored)
    if (!isUserName(name)) return null
    const entry = this.#entries.get(name)
    return entry !== undefined && entry.incarnation === this.#database()?.incarnation
      && this.#parts.clock.monotonic() - entry.readAt < confirmMs ? entry.account : undefined
  }

  /**
   * Returns the account, or null if there is none.
   *
   * @throws ApiError when the document of the user cannot be read
   */
  async open(name: string): Promise<Account | null> {
    const current = this.current(name)
    if (current !== undefined) return current
    const stored = this.#parts.configuration.get('admins', name)
    return stored === undefined ? this.#openUser(name) : this.#openAdministrator(name, stored)
  }

  /**
   * Returns the account once more before a client is refused because of it: another node may have changed it. An
   * account whose reading began before `since` is read again, but not more often than once in `confirmedMs`, so that
   * wrong passwords cost few readings. It stays as it is when it cannot be read.
   *
   * @param since monotonic milliseconds
   */
  async confirm(name: string, account: Account | null, since: number): Promise<Account | null> {
    const now = this.#parts.clock.monotonic()
    const isFresh = (this.#entries.get(name)?.readAt ?? -Infinity) >= since
    const isBounded = now - (this.#confirmed.get(name) ?? -Infinity) < confirmedMs || this.#isUnreadable(name, now)
    if (isUserName(name) && !isFresh && !isBounded) {
      this.#confirmed.set(name, now)
      const stored = this.#parts.configuration.get('admins', name)
      // Administrators too, so that the time does not show who is one.
      await (stored === undefined ? this.#openUser(name) : this.#openAdministrator(name, stored)).catch(() => null)
    }
    const current = this.current(name)
    return current === undefined ? account : current
  }

  async #openUser(name: string): Promise<Account | null> {
    if (this.#parts.control.state() === null) throw unavailable()
    const db = this.#database()
    const running = this.#readings.get(name)
    if (running !== undefined && running.incarnation === db?.incarnation) return running.result!
    const reading: Reading = { incarnation: db?.incarnation }
    this.#readings.set(name, reading)
    reading.result = this.#read(db, name, reading)
    return reading.result
  }

  /** Call this when the document of a user may have changed, before the write is answered. */
  forget(name: string): void {
    this.#entries.delete(name)
    this.#readings.delete(name)
    this.#unreadable.delete(name)
  }

  #database(): DatabaseRecord | undefined {
    return this.#parts.control.state()?.databases.get(usersDatabase)
  }

  /** @param known the database; undefined when this node does not know it, maybe because it was just created */
  async #read(known: DatabaseRecord | undefined, name: string, reading: Reading): Promise<Account | null> {
    const readAt = this.#parts.clock.monotonic()
    try {
      const db = known ?? await this.#parts.control.confirmAbsent(usersDatabase)
      if (db === undefined) {
        this.#keep(name, reading, { incarnation: undefined, readAt, revisions: '', account: null })
        return null
      }
      const context = { requestId: 'authentication', signal: new AbortController().signal }
      const opened = await this.#parts.coordinator.openDocument(db, userIdPrefix + name, {}, context)
      const revisions = JSON.stringify([opened?.leaves.map(({ revision }) => revision)])
      const before = this.#entries.get(name)
      const account = before?.incarnation === db.incarnation && before.revisions === revisions ? before.account
        : opened === null || opened.leaves[0]!.deleted ? null
        : await this.#parts.turns.run(accountOf(name, opened))
      this.#parts.refusals.note(account?.hash ?? null)
      this.#keep(name, reading, { incarnation: db.incarnation, readAt, revisions, account })
      return account
    } finally {
      if (this.#readings.get(name) === reading) this.#readings.delete(name)
    }
  }

  /** Keeps the result of a reading that is still wanted. */
  #keep(name: string, reading: Reading, entry: Entry): void {
    if (this.#readings.get(name) === reading) this.#entries.set(name, entry)
  }

  /** Returns undefined when the document must be read first. An old one is read again in the background. */
  #currentAdministrator(name: string, stored: string): Account | null | undefined {
    const db = this.#database()
    const now = this.#parts.clock.monotonic()
    if (db === undefined || !isUserName(name)) return this.#administrator(name, stored, null)
    const entry = this.#entries.get(name)
    if (entry === undefined || entry.incarnation !== db.incarnation) {
      return this.#isUnreadable(name, now) ? this.#administrator(name, stored, null) : undefined
    }
    if (now - entry.readAt >= confirmMs && !this.#readings.has(name) && !this.#isUnreadable(name, now)) {
      void this.#tryToRead(name)
    }
    return this.#administrator(name, stored, entry.account)
  }

  #isUnreadable(name: string, now: number): boolean {
    return now < (this.#unreadable.get(name) ?? -Infinity)
  }

  async #openAdministrator(name: string, stored: string): Promise<Account | null> {
    const waited = new AbortController()
    const timeout = sleep(this.#parts.clock, administratorWaitMs, waited.signal).then(() => null)
    const document = await Promise.race([this.#tryToRead(name), timeout])
    waited.abort()
    if (document === null) this.#unreadable.set(name, this.#parts.clock.monotonic() + confirmMs)
    return this.#administrator(name, stored, document?.account ?? null)
  }

  /** Reads the document of an administrator. Resolves to null when it cannot be read. */
  async #tryToRead(name: string): Promise<{ readonly account: Account | null } | null> {
    try {
      return { account: await this.#openUser(name) }
    } catch {
      this.#unreadable.set(name, this.#parts.clock.monotonic() + confirmMs)
      return null
    }
  }

  /** @param document the account of the document of the same name; null: there is none */
  #administrator(name: string, stored: string, document: Account | null): Account | null {
    const known = this.#administrators.get(name)
    if (known?.stored === stored && known.document === document) return known.account
    const hash = parseAdminHash(stored)
    const user = { name, roles: ['_admin', ...document?.user.roles ?? []], admin: true }
    const account = hash === null ? null
      : { user: { ...user, salt: hash.salt }, hash, oneTimeSecret: null, isConflicted: false }
    this.#administrators.set(name, { stored, document, account })
    return account
  }
}

function unavailable(): ApiError {
  return new ApiError('service_unavailable', 'The users of the cluster are not known yet.', {
    headers: { 'Retry-After': '1' },
  })
}
