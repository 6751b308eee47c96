/** The changes that clients request, as commands, and the meaning of each result for the client. */
import { ApiError } from '@sectional/core'
import type { HashRange } from '@sectional/core'
import { StorageError } from '@sectional/runtime'
import type { Random } from '@sectional/runtime'
import { securityDigest, type DatabaseRecord, type DatabaseSecurity } from './cluster-state.ts'
import { CommandError } from './commands.ts'
import type { CommandBody, CommandResult } from './commands.ts'
import type { ControlPlaneOptions } from './control-options.ts'
import type { CreateDatabaseOptions, DatabaseOption } from './control-plane.ts'
import { maxDeleteIntents } from './intents.ts'
import type { DeleteIntents } from './intents.ts'
import { NotAppliedHereError } from './proposer.ts'
import type { Proposer } from './proposer.ts'

const incarnationBytes = 16

export interface DatabaseChangesParts {
  readonly random: Random
  readonly proposer: Proposer
  readonly options: ControlPlaneOptions
  readonly intents: () => DeleteIntents | undefined
  /** Returns the database as the log has it; databases whose deletion was promised are not hidden. */
  readonly applied: (name: string) => DatabaseRecord | undefined
  /** Returns the database as clients see it. Asks the leader when this node does not know the name. */
  readonly find: (name: string) => Promise<DatabaseRecord | undefined>
}

export class DatabaseChanges {
  readonly #parts: DatabaseChangesParts

  constructor(parts: DatabaseChangesParts) {
    this.#parts = parts
  }

  async createDatabase(name: string, { q, n, partitioned }: CreateDatabaseOptions): Promise<DatabaseRecord> {
    const { random } = this.#parts
    const incarnation = Buffer.from(random.bytes(incarnationBytes)).toString('hex')
    const seed = Math.floor(random.fraction() * 0x1_0000_0000)
    await this.#keepPromise(name)
    const result = await this.#submit({ type: 'create-database', name, incarnation, q, n, partitioned, seed })
    if (result.kind === 'exists') throw new ApiError('file_exists')
    const record = this.#parts.applied(name)
    if (record?.incarnation !== incarnation) {
      throw new ApiError('database_missing', 'The database was created and deleted again at the same time.')
    }
    return record
  }

  async deleteDatabase(name: string): Promise<'deleted' | 'accepted'> {
    let outcome: 'deleted' | 'accepted' = 'deleted'
    await this.#change(name, async incarnation => {
      try {
        const { options: { deleteMs }, proposer } = this.#parts
        return await proposer.submit({ type: 'delete-database', name, incarnation }, deleteMs)
      } catch (error) {
        outcome = 'accepted'
        // A database that is missing there may be an earlier one of the name: this node is behind.
        if (error instanceof NotAppliedHereError && error.result.kind !== 'missing') return error.result
        await this.#promise(name, incarnation, error)
        return { kind: 'done' }
      }
    })
    return outcome
  }

  /** Promises a deletion that could not be proposed now. @throws the given error when it cannot be promised */
  async #promise(name: string, incarnation: string, error: unknown): Promise<void> {
    const intents = this.#parts.intents()
    const isOutage = error instanceof ApiError && error.status === 503 && !(error instanceof NotAppliedHereError)
    if (!isOutage || !intents || intents.size >= maxDeleteIntents) throw error
    try {
      await intents.add({ name, incarnation })
    } catch (failure) {
      // A deletion that the disk refuses to store cannot be promised.
      throw failure instanceof StorageError ? error : failure
    }
  }

  async setSecurity(name: string, security: DatabaseSecurity, replaced?: DatabaseSecurity): Promise<void> {
    const condition = replaced === undefined ? {} : { replaces: securityDigest(replaced) }
    await this.#change(name, incarnation =>
      this.#propose({ type: 'set-security', name, incarnation, security, ...condition }))
  }

  async setDatabaseOption(name: string, option: DatabaseOption): Promise<void> {
    await this.#change(name, incarnation => this.#propose({ type: 'set-database-option', name, incarnation, option }))
  }

  async setSetting(section: string, key: string, value: string | null): Promise<void> {
    await this.#submit({ type: 'set-setting', section, key, value })
  }

  async removeNode(node: string): Promise<void> {
    const result = await this.#propose({ type: 'remove-node', node })
    if (result.kind === 'missing') throw new ApiError('not_found', `${node} is not a member of the cluster.`)
    checkResult(result)
  }

  async replicaFilled(incarnation: string, range: HashRange, node: string): Promise<void> {
    // The result `missing` means that the database or the replica no longer exists, so that there is nothing to report.
    await this.#propose({ type: 'replica-filled', incarnation, range, node })
  }

  async replicaDamaged(incarnation: string, range: HashRange, node: string): Promise<boolean> {
    return (await this.#propose({ type: 'replica-damaged', incarnation, range, node })).kind === 'done'
  }

  /**
   * Applies a deletion of this name that was promised on this node. The name becomes free only when the log has the
   * deletion.
   */
  async #keepPromise(name: string): Promise<void> {
    const hidden = this.#parts.applied(name)
    if (hidden && this.#parts.intents()?.hides(hidden.incarnation)) {
      await this.#propose({ type: 'delete-database', name, incarnation: hidden.incarnation })
    }
  }

  /**
   * Changes the database that has the name. A node that is behind may know an earlier database of the name. When that
   * one is missing in the log, the node has learned of the present one.
   *
   * @throws ApiError `database_missing` when the name was free at some moment since the call
   */
  async #change(name: string, change: (incarnation: string) => Promise<CommandResult>): Promise<void> {
    const record = await this.#parts.find(name)
    if (!record) throw new ApiError('database_missing')
    const result = await change(record.incarnation)
    const present = result.kind === 'missing' ? this.#parts.applied(name) : undefined
    const isOther = present !== undefined && present.incarnation !== record.incarnation
    checkResult(isOther ? await change(present.incarnation) : result)
  }

  async #submit(command: CommandBody): Promise<CommandResult> {
    return checkResult(await this.#propose(command))
  }

  async #propose(command: CommandBody): Promise<CommandResult> {
    try {
      return await this.#parts.proposer.submit(command, this.#parts.options.proposeMs)
    } catch (error) {
      if (error instanceof CommandError) throw new ApiError('bad_request', error.message, { cause: error })
      throw error
    }
  }
}

function checkResult(result: CommandResult): CommandResult {
  if (result.kind === 'missing') throw new ApiError('database_missing')
  if (result.kind === 'changed') throw new ApiError('conflict')
  if (result.kind === 'refused') throw new ApiError('bad_request', result.reason)
  return result
}
