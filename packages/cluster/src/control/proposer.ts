/**
 * Passes a command of any node to the leader of the log. It proposes the command here when this node leads, and sends
 * it to the leader otherwise. It repeats this across changes of leader until the deadline; the command's id makes
 * repetition harmless.
 */
import { ApiError, ReplicaError } from '@sectional/core'
import type { CallContext, PeerNetwork, ProposeReply } from '@sectional/core'
import type { Clock, Log, Random } from '@sectional/runtime'
import { Waiters } from '../consensus/waiters.ts'
import { checkCommand } from './commands.ts'
import type { Command, CommandBody, CommandResult } from './commands.ts'

const commandIdBytes = 16

/** The operations on this node's part of the log that the proposer needs. */
export interface LogAccess {
  readonly leader: string | null
  readonly voters: readonly string[]
  /** Handles a proposal as the leader. */
  propose(command: unknown, context: CallContext): Promise<ProposeReply>
  waitApplied(index: number, timeoutMs: number): Promise<boolean>
}

export interface ProposerParts {
  readonly node: string
  readonly clock: Clock
  readonly random: Random
  readonly network: PeerNetwork
  readonly say: Log
  /** Returns null while this node is not admitted to a cluster. */
  readonly log: () => LogAccess | null
  /** Milliseconds for one attempt at one leader. */
  readonly attemptMs: number
  /** Milliseconds between attempts. An event that `changed` reports ends the pause earlier. */
  readonly retryMs: number
  /** The reason why this node cannot write its metadata now, as a clause; null when it can. */
  readonly diskTrouble: () => string | null
}

/** The command is in the log, but this node has not applied it within the time limit. */
export class NotAppliedHereError extends ApiError {
  readonly result: CommandResult

  constructor(result: CommandResult, node: string, cause: string) {
    const reason = `The cluster has decided on this change, but ${node} does not show it yet: ${cause}. `
      + 'Ask another node, or try again later.'
    super('service_unavailable', reason, {
      headers: { 'Retry-After': '5' },
    })
    this.result = result
  }
}

export class Proposer {
  readonly #parts: ProposerParts
  readonly #changes: Waiters
  #generation = 0
  #stopped = false

  constructor(parts: ProposerParts) {
    this.#parts = parts
    this.#changes = new Waiters(parts.clock)
  }

  /** Call this when the leader or a link may have changed. */
  changed(): void {
    this.#generation += 1
    this.#changes.check()
  }

  stop(): void {
    this.#stopped = true
    this.#changes.stop()
  }

  /**
   * Resolves once this node has applied the command.
   * @throws NotAppliedHereError (with the result) when the command is in the log, but not applied here within
   *   `timeoutMs`
   * @throws ApiError `service_unavailable` after `timeoutMs`; the command may still be applied later
   */
  async submit(body: CommandBody, timeoutMs: number): Promise<CommandResult> {
    const command: Command = checkCommand({ ...body, id: newCommandId(this.#parts.random) })
    const { result } = await this.#send(command, timeoutMs)
    return result as CommandResult
  }

  /**
   * Waits until this node has applied everything that was decided before this call.
   * @throws ApiError `service_unavailable` after `timeoutMs`
   */
  async catchUp(timeoutMs: number): Promise<void> {
    await this.#send({ type: 'read-index' }, timeoutMs)
  }

  async #send(command: unknown, timeoutMs: number): Promise<{ readonly result: unknown }> {
    const { clock } = this.#parts
    const deadline = clock.monotonic() + timeoutMs
    for (let left = timeoutMs; left > 0 && !this.#stopped; left = deadline - clock.monotonic()) {
      const generation = this.#generation
      const reply = await this.#attempt(command, Math.min(left, this.#parts.attemptMs))
      if (reply?.kind === 'applied') {
        if (await this.#parts.log()?.waitApplied(reply.index, deadline - clock.monotonic())) {
          return { result: reply.result }
        }
        throw new NotAppliedHereError(
          reply.result as CommandResult, this.#parts.node,
          this.#parts.diskTrouble() ?? 'it has not caught up with the leader',
        )
      }
      await this.#changes.wait(
        () => this.#generation !== generation, Math.min(this.#parts.retryMs, deadline - clock.monotonic()),
      )
    }
    throw this.#unavailable()
  }

  async #attempt(command: unknown, timeoutMs: number): Promise<ProposeReply | undefined> {
    const log = this.#parts.log()
    if (!log || log.leader === null) return undefined
    const peer = log.leader === this.#parts.node ? log : this.#parts.network.control(log.leader)
    try {
      return await peer.propose(command, { timeoutMs })
    } catch (error) {
      if (!(error instanceof ReplicaError)) throw error
      this.#parts.say.debug({ err: error, leader: log.leader }, 'the leader did not take a command')
      return undefined
    }
  }

  #unavailable(): ApiError {
    return new ApiError('service_unavailable', this.#unavailableReason(), { headers: { 'Retry-After': '5' } })
  }

  #unavailableReason(): string {
    const { node } = this.#parts
    const trouble = this.#parts.diskTrouble()
    if (trouble !== null) {
      return `${node} cannot change the cluster's metadata now: ${trouble}. Ask another node, or try again later.`
    }
    const log = this.#parts.log()
    if (log === null) return 'This node has not been admitted to a cluster yet.'
    return `The cluster's metadata cannot be changed now: no majority of its voters (${log.voters.join(', ')}) answers `
      + `${node}. Documents can still be read and written. Try again later.`
  }
}

export function newCommandId(random: Random): string {
  return Buffer.from(random.bytes(commandIdBytes)).toString('hex')
}
