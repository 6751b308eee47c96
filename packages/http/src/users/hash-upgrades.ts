/**
 * Replaces outdated password hashes of users after a login, the only moment at which the node knows the password
 * (`chttpd_auth/upgrade_hash_on_auth`). The salt stays, so that the sessions of the user continue.
 */
import { userIdPrefix, usersDatabase, type ControlPlane, type Coordinator } from '@sectional/cluster'
import type { Clock, Log, Turns } from '@sectional/runtime'
import type { Accounts } from '../authentication/accounts.ts'
import { BoundedMap } from '../authentication/bounded-map.ts'
import type { PasswordHash } from '../authentication/password-hash.ts'
import type { PasswordHasher } from '../authentication/password-hasher.ts'
import { accountOf, type Account } from '../authentication/user-account.ts'
import { documentWrite } from '../documents/document-writing.ts'
import type { HttpOptions } from '../settings/http-options.ts'
import { withHash } from './user-document-body.ts'

/** Upgrades that run at the same time. Others are left to a later login. */
const runningMax = 8
/** Milliseconds from an upgrade that changed nothing to the next one of the same user: each computes a hash. */
const pauseMs = 60_000
/** Users whose last upgrade is remembered because it changed nothing. */
const failedMax = 1000

export interface HashUpgradesParts {
  readonly accounts: Pick<Accounts, 'forget'>
  readonly hasher: PasswordHasher
  readonly control: Pick<ControlPlane, 'state'>
  readonly coordinator: Pick<Coordinator, 'openDocument' | 'updateDocuments'>
  readonly clock: Pick<Clock, 'monotonic'>
  readonly turns: Turns
  readonly log: Log
  readonly options: Pick<HttpOptions, 'upgradesHashes'>
}

export class HashUpgrades {
  readonly #parts: HashUpgradesParts
  readonly #running = new Map<string, Promise<void>>()
  /** Monotonic milliseconds of the end of an upgrade that changed nothing. */
  readonly #failed = new BoundedMap<string, number>(failedMax)

  constructor(parts: HashUpgradesParts) {
    this.#parts = parts
  }

  /** Returns whether `afterLogin` would start an upgrade. It is cheap enough to be called for each request. */
  isDue({ user: { name, admin }, hash }: Account): boolean {
    const { clock, hasher, options } = this.#parts
    if (admin || hash === null || !options.upgradesHashes || !hasher.isOutdated(hash)) return false
    if (this.#running.has(name) || this.#running.size >= runningMax) return false
    return clock.monotonic() - (this.#failed.get(name) ?? -Infinity) >= pauseMs
  }

  /** Starts the upgrade if the hash is outdated. A failure is logged, and tried again at a login after `pauseMs`. */
  afterLogin(account: Account, password: string): void {
    if (!this.isDue(account)) return
    const { clock, log } = this.#parts
    const { user: { name }, hash } = account
    const upgrade = this.#upgrade(name, password, hash!)
      .catch((error: unknown) => {
        log.warn({ user: name, error: String(error) }, 'an outdated password hash could not be replaced')
        return false
      })
      .then(isReplaced => {
        this.#running.delete(name)
        if (isReplaced) this.#failed.delete(name)
        else this.#failed.set(name, clock.monotonic())
      })
    this.#running.set(name, upgrade)
  }

  /** Resolves when the running upgrades have ended. */
  async drain(): Promise<void> {
    await Promise.all(this.#running.values())
  }

  /** Returns whether the hash was replaced. */
  async #upgrade(name: string, password: string, verified: PasswordHash): Promise<boolean> {
    const { accounts, control, coordinator, hasher, turns } = this.#parts
    const db = control.state()?.databases.get(usersDatabase)
    if (db === undefined) return false
    const context = { requestId: 'hash-upgrade', signal: new AbortController().signal }
    const id = userIdPrefix + name
    const opened = await coordinator.openDocument(db, id, {}, context)
    if (opened?.body === undefined || opened.leaves[0]!.deleted) return false
    const account = await turns.run(accountOf(name, opened))
    // Somebody may have changed the password since, or a replication may have brought a conflict.
    if (account.isConflicted || JSON.stringify(account.hash) !== JSON.stringify(verified)) return false
    const hash = await hasher.hash(password, { address: 'writes', name, known: true }, verified.salt)
    const body = await turns.run(withHash(opened.body, hash))
    const write = documentWrite(id, opened.leaves[0]!.revision, false, body, opened.attachments)
    try {
      // The node itself writes. A conflict means that somebody else has just written the document.
      const [outcome] = await coordinator.updateDocuments(db, [write], {}, context)
      return outcome!.kind === 'written'
    } finally {
      accounts.forget(name)
    }
  }
}
