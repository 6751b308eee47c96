/** Connects the state machine to the log: holds the newest state and calls the listener after changes. */
import type { LogEntry } from '@sectional/core'
import type { Log } from '@sectional/runtime'
import type { ReplicatedStateMachine } from '../consensus/raft-driver.ts'
import type { RaftSnapshot } from '../consensus/raft-work.ts'
import { decodeCommand } from './commands.ts'
import { applyCommand, initialState, memberOf } from './state-machine.ts'
import type { ControlState } from './state-machine.ts'
import { decodeState, encodeState } from './state-snapshot.ts'
import type { Pause } from './state-snapshot.ts'

export class ControlMachine implements ReplicatedStateMachine {
  readonly #clusterId: string
  readonly #log: Log
  readonly #onSettled: () => void
  #current: ControlState
  /**
   * Entries up to this index were on this node's disk when it started; changes of membership in them were logged
   * before.
   */
  #historyEnd = 0

  constructor(clusterId: string, log: Log, onSettled: () => void) {
    this.#clusterId = clusterId
    this.#log = log
    this.#onSettled = onSettled
    this.#current = initialState(clusterId)
  }

  get state(): ControlState { return this.#current }

  apply(entry: LogEntry): unknown {
    if (entry.kind !== 'command') {
      this.#current = { ...this.#current, index: entry.index }
      return null
    }
    const command = decodeCommand(entry.payload)
    const before = command.type === 'admit-node' ? memberOf(this.#current, command.node) : undefined
    const { state, result } = applyCommand(this.#current, entry.index, command)
    this.#current = state
    const isMembership = command.type === 'admit-node' || command.type === 'remove-node'
      || command.type === 'forget-node'
    // A member announces each start of its process; these announcements are not logged as changes of membership.
    const isStart = command.type === 'admit-node' && !command.fresh && result.kind === 'done'
      && before?.address === command.address && before.zone === command.zone
    if (isMembership && !isStart && entry.index > this.#historyEnd) {
      this.#log.info({ index: entry.index, command: command.type, member: command.node, result }, 'membership')
    } else {
      this.#log.debug({ index: entry.index, command: command.type, result }, 'applied')
    }
    return result
  }

  snapshot(pause: Pause): Promise<Uint8Array> { return encodeState(this.#current, pause) }

  async restore(snapshot: RaftSnapshot, lastIndex: number, pause: Pause): Promise<void> {
    this.#historyEnd = Math.max(this.#historyEnd, lastIndex)
    const state = snapshot.index === 0
      ? initialState(this.#clusterId)
      : await decodeState(snapshot.state, this.#current, pause)
    if (state.clusterId !== this.#clusterId) {
      throw new Error(`a snapshot of cluster ${state.clusterId} reached a node of ${this.#clusterId}`)
    }
    this.#current = state
  }

  settled(): void { this.#onSettled() }
}
