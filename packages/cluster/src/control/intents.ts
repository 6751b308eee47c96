/**
 * Deletions that were promised (202) while no majority could be reached. The intent is on disk before the client is
 * answered. The deletion is proposed again, by name and incarnation, until the log has it; meanwhile this node hides
 * the database.
 */
import { SingleRun } from '@sectional/core'
import { sleep } from '@sectional/runtime'
import type { Clock, Log } from '@sectional/runtime'
import type { ClusterState } from './cluster-state.ts'
import type { CommandBody, CommandResult } from './commands.ts'
import type { ControlStore, DeleteIntent } from './control-store.ts'

/** Promises that one node keeps at a time. More deletions are answered with 503. */
export const maxDeleteIntents = 10_000

export interface IntentParts {
  readonly clock: Clock
  readonly log: Log
  readonly store: ControlStore
  readonly retryMs: number
  /** Rejects while the log cannot be reached. */
  readonly submit: (command: CommandBody) => Promise<CommandResult>
  /** Called when the set of hidden databases has changed. */
  readonly onChange: () => void
}

export class DeleteIntents {
  readonly #parts: IntentParts
  readonly #pending = new Map<string, DeleteIntent>()
  /**
   * Incarnations of which a promise could not be stored. The write that failed may be on the disk nevertheless, and is
   * removed there. Otherwise a later start would delete a database whose deletion was refused.
   */
  readonly #withdrawn = new Set<string>()
  readonly #stopping = new AbortController()
  readonly #proposals = new SingleRun(() => this.#run())

  constructor(parts: IntentParts) {
    this.#parts = parts
  }

  async load(): Promise<void> {
    for (const intent of await this.#parts.store.intents()) this.#pending.set(intent.incarnation, intent)
  }

  get size(): number { return this.#pending.size }

  all(): Iterable<DeleteIntent> { return this.#pending.values() }

  hides(incarnation: string): boolean { return this.#pending.has(incarnation) }

  /** Records a promised deletion; durable when resolved. @throws StorageError; then nothing is promised */
  async add(intent: DeleteIntent): Promise<void> {
    this.#withdrawn.delete(intent.incarnation)
    try {
      await this.#parts.store.addIntent(intent)
    } catch (error) {
      this.#withdrawn.add(intent.incarnation)
      this.start()
      throw error
    }
    this.#pending.set(intent.incarnation, intent)
    this.#parts.log.info(
      { database: intent.name, incarnation: intent.incarnation },
      'deletion promised; it is applied once a majority of voters is in reach',
    )
    this.#parts.onChange()
    this.start()
  }

  /** Starts to propose the promised deletions until none is left. */
  start(): void {
    this.#proposals.request()
  }

  /** Removes the intents whose database no longer exists. */
  async settle(state: ClusterState): Promise<void> {
    for (const { name, incarnation } of [...this.#pending.values()]) {
      if (state.databases.get(name)?.incarnation === incarnation) continue
      await this.#parts.store.removeIntent(incarnation)
      this.#pending.delete(incarnation)
      this.#parts.onChange()
    }
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#proposals.running
  }

  get #hasWork(): boolean { return this.#pending.size + this.#withdrawn.size > 0 }

  async #withdraw(): Promise<void> {
    for (const incarnation of [...this.#withdrawn]) {
      this.#withdrawn.delete(incarnation)
      if (this.#pending.has(incarnation)) continue
      try {
        await this.#parts.store.removeIntent(incarnation)
      } catch (error) {
        this.#withdrawn.add(incarnation)
        this.#parts.log.debug(
          { err: error, incarnation }, 'a deletion that was refused could not be removed from the disk yet')
        return
      }
    }
  }

  async #run(): Promise<void> {
    while (this.#hasWork && !this.#stopping.signal.aborted) {
      await this.#withdraw()
      for (const { name, incarnation } of [...this.#pending.values()]) {
        try {
          await this.#parts.submit({ type: 'delete-database', name, incarnation })
          await this.#parts.store.removeIntent(incarnation)
          this.#pending.delete(incarnation)
          this.#parts.log.info({ database: name, incarnation }, 'a promised deletion was applied')
          this.#parts.onChange()
        } catch (error) {
          this.#parts.log.debug({ err: error, database: name }, 'a promised deletion could not be applied yet')
          break
        }
      }
      if (this.#hasWork) await sleep(this.#parts.clock, this.#parts.retryMs, this.#stopping.signal)
    }
  }
}
