/**
 * The position up to which the changes of `_users` have been carried out. It is a local document of `_users`, so it is
 * replicated, and lost together with the users.
 */
import { decodeSinceToken, isJsonObject, parseJson } from '@sectional/core'
import type { Since } from '@sectional/core'
import type { Runtime, Timer } from '@sectional/runtime'
import type { Coordinator, OperationContext } from '../contracts/coordinator.ts'
import type { DatabaseRecord } from '../control/cluster-state.ts'

/** The id without `_local/`. */
const id = 'couch_peruser'

type Position = Exclude<Since, { readonly kind: 'malformed' }>

export interface UsersCheckpointParts {
  readonly runtime: Pick<Runtime, 'clock' | 'log'>
  readonly coordinator: Pick<Coordinator, 'openLocalDocument' | 'updateLocalDocument'>
  /** The users database. */
  readonly users: DatabaseRecord
  /** The prefix of the databases. A position that was reached with another prefix does not count. */
  readonly prefix: string
  readonly delayMs: number
  readonly context: OperationContext
}

export class UsersCheckpoint {
  readonly #parts: UsersCheckpointParts
  #revision = 0
  /** Present while a save is waiting or running. */
  #timer: Timer | undefined
  #unsaved = false
  #position: () => string = () => ''
  #saving: Promise<void> = Promise.resolve()
  #closed = false

  constructor(parts: UsersCheckpointParts) {
    this.#parts = parts
  }

  async load(): Promise<Position> {
    const { coordinator, users, prefix, context } = this.#parts
    const stored = await coordinator.openLocalDocument(users, id, {}, context)
    this.#revision = stored?.revision ?? 0
    const content: unknown = stored?.body == null ? undefined : parseJson(stored.body)
    if (!isJsonObject(content) || content['database_prefix'] !== prefix) return { kind: 'start' }
    return positionOf(String(content['since']))
  }

  /** Saves a position after the delay. @param position returns the position at that time */
  moved(position: () => string): void {
    this.#position = position
    this.#unsaved = true
    this.#schedule()
  }

  /** Saves what is not saved yet, unless the work was aborted. What is not saved is repeated later. */
  async close(): Promise<void> {
    this.#closed = true
    this.#timer?.cancel()
    await this.#saving
    if (this.#unsaved && !this.#parts.context.signal.aborted) await this.#saveNow()
  }

  #schedule(): void {
    if (this.#closed || this.#timer !== undefined || !this.#unsaved) return
    this.#timer = this.#parts.runtime.clock.setTimer(this.#parts.delayMs, () => {
      this.#saving = this.#saveNow().then(() => {
        this.#timer = undefined
        this.#schedule()
      })
    })
  }

  async #saveNow(): Promise<void> {
    this.#unsaved = false
    try {
      await this.#save(this.#position())
    } catch (error) {
      this.#unsaved = true
      this.#parts.runtime.log.debug({ error: String(error) }, 'the position in the changes of users was not saved')
    }
  }

  async #save(since: string): Promise<void> {
    const { coordinator, users, prefix, context } = this.#parts
    const body = Buffer.from(JSON.stringify({ database_prefix: prefix, since }))
    const write = { id, revision: this.#revision + 1, body, mustExist: false }
    await coordinator.updateLocalDocument(users, write, {}, context)
    this.#revision++
  }
}

/** Returns the beginning for a token that is none. */
export function positionOf(token: string): Position {
  const since = decodeSinceToken(token)
  return since.kind === 'malformed' ? { kind: 'start' } : since
}
