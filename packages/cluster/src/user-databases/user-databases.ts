/**
 * Gives every user a database (`couch_peruser`). The node that leads the metadata log does this for all users: it is
 * connected to a majority of the voters, and every change that is needed here passes the log. It follows the changes of
 * `_users` on the replicas, so it does not matter which node took a write, and whether that node still runs. Another
 * leader continues from the checkpoint. It repeats the last changes, and two leaders at the same time make the same
 * changes, which is harmless.
 */
import { ApiError, checkDatabaseName, mapBounded } from '@sectional/core'
import type { ChangeRow } from '@sectional/core'
import { sleep } from '@sectional/runtime'
import type { Runtime, Timer } from '@sectional/runtime'
import type { ChangesFeed, Coordinator } from '../contracts/coordinator.ts'
import type { DatabaseRecord, DatabaseSecurity } from '../control/cluster-state.ts'
import type { ControlPlane } from '../control/control-plane.ts'
import { usersDatabase } from '../validation/user-document-rules.ts'
import { userDatabaseName, userOf, withoutUser, withUser } from './user-database.ts'
import { defaultUserDatabasesOptions } from './user-databases-options.ts'
import type { UserDatabasesOptions } from './user-databases-options.ts'
import { positionOf, UsersCheckpoint } from './users-checkpoint.ts'

/** The values of the options `couch_peruser/*` and of `cluster/n`. */
export interface UserDatabasesSettings {
  readonly createsUserDatabases: boolean
  readonly deletesUserDatabases: boolean
  readonly userDatabaseShards: number
  readonly userDatabasePrefix: string
  readonly replicasPerShard: number
}

/** A change that was made, for the audit stream. */
export type UserDatabaseChange =
  | { readonly kind: 'created'; readonly database: string; readonly q: number; readonly n: number }
  | { readonly kind: 'deleted'; readonly database: string; readonly outcome: 'deleted' | 'accepted' }
  | { readonly kind: 'secured'; readonly database: string; readonly security: DatabaseSecurity }

export interface UserDatabasesParts {
  readonly runtime: Pick<Runtime, 'clock' | 'log'>
  readonly control: Pick<ControlPlane,
    'node' | 'leader' | 'state' | 'onChange' | 'createDatabase' | 'deleteDatabase' | 'setSecurity' | 'confirmAbsent'>
  readonly coordinator: Pick<Coordinator, 'openChanges' | 'openLocalDocument' | 'updateLocalDocument'>
  /** Its values may change. Call `look` then. */
  readonly settings: UserDatabasesSettings
  readonly onChange?: (change: UserDatabaseChange) => void
  readonly options?: Partial<UserDatabasesOptions>
}

/** The work of this node, from when it has to do it until another node does or the circumstances change. */
interface Work {
  /** Incarnation of the users database. */
  readonly incarnation: string
  readonly prefix: string
  readonly abort: AbortController
}

export class UserDatabases {
  readonly #parts: UserDatabasesParts
  readonly #options: UserDatabasesOptions
  #unsubscribe: () => void = () => {}
  #stopped = false
  #work: Work | undefined
  /** Resolves when no work is running any more. */
  #ended: Promise<void> = Promise.resolve()
  #timer: Timer | undefined

  constructor(parts: UserDatabasesParts) {
    this.#parts = parts
    this.#options = { ...defaultUserDatabasesOptions, ...parts.options }
  }

  start(): void {
    this.#unsubscribe = this.#parts.control.onChange(() => { this.look() })
    this.look()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#unsubscribe()
    this.#timer?.cancel()
    this.#work?.abort.abort()
    await this.#ended
  }

  /** Begins or ends the work, if that is necessary. */
  look(): void {
    if (this.#stopped) return
    const { control, settings, runtime: { clock } } = this.#parts
    const { createsUserDatabases: enabled, userDatabasePrefix: prefix } = settings
    const leads = enabled && control.leader() === control.node
    const incarnation = leads ? control.state()?.databases.get(usersDatabase)?.incarnation : undefined
    if (this.#work !== undefined && (this.#work.incarnation !== incarnation || this.#work.prefix !== prefix)) {
      this.#work.abort.abort()
      this.#work = undefined
    }
    if (this.#work === undefined && incarnation !== undefined) {
      const work = this.#work = { incarnation, prefix, abort: new AbortController() }
      this.#ended = this.#ended.then(() => this.#follow(work))
    }
    // The control plane does not report changes of the leader.
    if (enabled) {
      this.#timer ??= clock.setTimer(this.#options.watchMs, () => {
        this.#timer = undefined
        this.look()
      })
    }
  }

  #follow(work: Work): Promise<void> {
    return this.#repeat(work, {}, async onProgress => {
      while (!work.abort.signal.aborted) await this.#read(work, onProgress)
    })
  }

  /**
   * Reads the changes of `_users` from the checkpoint on, and waits for further ones until the work ends. Present
   * changes are read first, because a node whose clients follow too many feeds may refuse to wait for changes.
   */
  async #read(work: Work, onProgress: () => void): Promise<void> {
    const { coordinator, control, runtime } = this.#parts
    // Replicas may have moved since the last attempt.
    const users = control.state()?.databases.get(usersDatabase)
    if (users?.incarnation !== work.incarnation) throw new ApiError('database_missing')
    const context = { requestId: 'user-databases', signal: work.abort.signal }
    const checkpoint = new UsersCheckpoint({
      runtime, coordinator, users, prefix: work.prefix, delayMs: this.#options.checkpointMs, context,
    })
    let since = await checkpoint.load()
    try {
      for (const follow of [false, true]) {
        const options = { since, descending: false, limit: null, body: false, follow }
        const feed = await coordinator.openChanges(users, options, context)
        try {
          await this.#take(work, feed, checkpoint, onProgress)
        } finally {
          await feed.close()
        }
        if (work.abort.signal.aborted) return
        since = positionOf(feed.token())
      }
    } finally {
      await checkpoint.close()
    }
  }

  async #take(work: Work, feed: ChangesFeed, checkpoint: UsersCheckpoint, onProgress: () => void): Promise<void> {
    for (let event = await feed.next(); event !== null; event = await feed.next()) {
      onProgress()
      if (event.kind === 'caught-up') continue
      await this.#apply(work, event.rows)
      if (work.abort.signal.aborted) return
      for (const row of event.rows) feed.take(event, row)
      checkpoint.moved(() => feed.token())
    }
  }

  /** Makes the databases of some users as they must be. Never rejects. It is not complete when it was aborted. */
  async #apply(work: Work, rows: readonly ChangeRow[]): Promise<void> {
    const { control } = this.#parts
    const users = rows.flatMap(({ id, leaves: [winner] }) => {
      const user = userOf(id)
      if (user === null || winner === undefined) return []
      return [{ user, deleted: winner.deleted, name: userDatabaseName(work.prefix, user) }]
    })
    // This node may have missed the creation of databases that must be changed now. One question tells about all.
    const unknown = users.find(({ deleted, name }) => deleted && !control.state()?.databases.has(name))
    if (unknown !== undefined) {
      await this.#repeat(work, { database: unknown.name }, async () => { await control.confirmAbsent(unknown.name) })
    }
    await mapBounded(users, this.#options.parallelMax, ({ user, deleted, name }) =>
      this.#repeat(work, { database: name, user }, async () => {
        try {
          await (deleted ? this.#release(name, user) : this.#give(name, user))
        } catch (error) {
          if (!isRefusal(error)) throw error
          const fields = { database: name, user, error: String(error) }
          this.#parts.runtime.log.warn(fields, 'the database of a user could not be created or changed')
        }
      }))
  }

  /** Makes sure that the database exists and that the user has access. */
  async #give(name: string, user: string): Promise<void> {
    const db = this.#parts.control.state()?.databases.get(name) ?? await this.#create(name)
    await this.#secure(db, withUser(db.security, user))
  }

  async #create(name: string): Promise<DatabaseRecord> {
    const { control, settings: { userDatabaseShards: q, replicasPerShard: n }, onChange } = this.#parts
    checkDatabaseName(name)
    try {
      const created = await control.createDatabase(name, { q, n, partitioned: false })
      onChange?.({ kind: 'created', database: name, q, n })
      return created
    } catch (error) {
      if (!(error instanceof ApiError) || error.error !== 'file_exists') throw error
      const existing = control.state()?.databases.get(name) ?? await control.confirmAbsent(name)
      if (existing === undefined) throw new ApiError('database_missing')
      return existing
    }
  }

  /** Deletes the database of a deleted user, or takes the user's access away. */
  async #release(name: string, user: string): Promise<void> {
    const { control, settings, onChange } = this.#parts
    const db = control.state()?.databases.get(name)
    if (db === undefined) return
    if (!settings.deletesUserDatabases) return this.#secure(db, withoutUser(db.security, user))
    const outcome = await control.deleteDatabase(name)
    onChange?.({ kind: 'deleted', database: name, outcome })
  }

  /** @throws ApiError `conflict` when another change came between; the next attempt begins with that one */
  async #secure({ name, security: before }: DatabaseRecord, security: DatabaseSecurity): Promise<void> {
    if (security === before) return
    await this.#parts.control.setSecurity(name, security, before)
    this.#parts.onChange?.({ kind: 'secured', database: name, security })
  }

  /**
   * Makes attempts until one succeeds or the work is aborted. Never rejects.
   *
   * @param attempt calls its argument when it has made progress, so that the next failure counts as the first one
   */
  async #repeat(
    { abort: { signal } }: Work, fields: Readonly<Record<string, string>>,
    attempt: (onProgress: () => void) => Promise<void>,
  ): Promise<void> {
    const { clock, log } = this.#parts.runtime
    const { retryMinMs, retryMaxMs } = this.#options
    let delayMs = retryMinMs
    while (!signal.aborted) {
      try {
        return await attempt(() => { delayMs = retryMinMs })
      } catch (error) {
        if (signal.aborted) return
        // Elections and restarts are no reason for a warning.
        const level = delayMs === retryMaxMs ? 'warn' : 'debug'
        log[level](
          { ...fields, error: String(error) }, 'the databases of users could not be created or changed; trying again',
        )
      }
      await sleep(clock, delayMs, signal)
      delayMs = Math.min(2 * delayMs, retryMaxMs)
    }
  }
}

/** The change cannot succeed later either: the name is too long, for instance. */
function isRefusal(error: unknown): boolean {
  return error instanceof ApiError && error.status === 400
}
