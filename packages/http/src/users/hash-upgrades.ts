/**
 * Replaces outdated password hashes of users after a login, the only moment at which the node knows the password
 * (`chttpd_auth/upgrade_hash_on_auth`). The salt stays, so that the sessions of the user continue.
 */
import { isJsonObject } from '@sectional/core'
import { userIdPrefix, usersDatabase, type ControlPlane, type Coordinator } from '@sectional/cluster'
import type { Log } from '@sectional/runtime'
import type { Accounts } from '../authentication/accounts.ts'
import type { PasswordHash } from '../authentication/password-hash.ts'
import type { PasswordHasher } from '../authentication/password-hasher.ts'
import { accountOf, type Account } from '../authentication/user-account.ts'
import { documentWrite } from '../documents/document-writing.ts'
import type { HttpOptions } from '../settings/http-options.ts'
import { parseExact, withHash } from './user-document-body.ts'

/** Upgrades that run at the same time. Others are left to a later login. */
const runningMax = 8

export interface HashUpgradesParts {
  readonly accounts: Pick<Accounts, 'forget'>
  readonly hasher: PasswordHasher
  readonly control: Pick<ControlPlane, 'state'>
  readonly coordinator: Pick<Coordinator, 'openDocument' | 'updateDocuments'>
  readonly log: Log
  readonly options: Pick<HttpOptions, 'upgradesHashes'>
}

export class HashUpgrades {
  readonly #parts: HashUpgradesParts
  readonly #running = new Map<string, Promise<void>>()

  constructor(parts: HashUpgradesParts) {
    this.#parts = parts
  }

  /** Starts the upgrade if the hash is outdated. A failure is logged, and tried again at a later login. */
  afterLogin(account: Account, password: string): void {
    const { hasher, log, options } = this.#parts
    const { user: { name, admin }, hash } = account
    if (admin || hash === null || !options.upgradesHashes || !hasher.isOutdated(hash)) return
    if (this.#running.has(name) || this.#running.size >= runningMax) return
    const upgrade = this.#upgrade(name, password, hash)
      .catch((error: unknown) => {
        log.warn({ user: name, error: String(error) }, 'an outdated password hash could not be replaced')
      })
      .finally(() => { this.#running.delete(name) })
    this.#running.set(name, upgrade)
  }

  /** Resolves when the running upgrades have ended. */
  async drain(): Promise<void> {
    await Promise.all(this.#running.values())
  }

  async #upgrade(name: string, password: string, verified: PasswordHash): Promise<void> {
    const { accounts, control, coordinator, hasher } = this.#parts
    const db = control.state()?.databases.get(usersDatabase)
    if (db === undefined) return
    const context = { requestId: 'hash-upgrade', signal: new AbortController().signal }
    const id = userIdPrefix + name
    const opened = await coordinator.openDocument(db, id, {}, context)
    if (opened?.body === undefined || opened.leaves[0]!.deleted) return
    const account = accountOf(name, opened)
    // Somebody may have changed the password since, or a replication may have brought a conflict.
    if (account.isConflicted || JSON.stringify(account.hash) !== JSON.stringify(verified)) return
    const document = parseExact(opened.body)
    if (!isJsonObject(document)) return
    const hash = await hasher.hash(password, { address: 'writes', name, known: true }, verified.salt)
    const write = documentWrite(id, opened.leaves[0]!.revision, false, withHash(document, hash), opened.attachments)
    try {
      // The node itself writes. A conflict means that somebody else has just written the document.
      await coordinator.updateDocuments(db, [write], {}, context)
    } finally {
      accounts.forget(name)
    }
  }
}
