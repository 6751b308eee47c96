/**
 * The parts of a node that belongs to a cluster: its part of the log, the state that the log builds, and the leader's
 * duties.
 */
import { ReplicaError } from '@sectional/core'
import type { CallContext, PeerNetwork, PeerStart, ProposeReply } from '@sectional/core'
import type { Log, Runtime } from '@sectional/runtime'
import { RaftDriver } from '../consensus/raft-driver.ts'
import { checkCommand, CommandError, encodeCommand } from './commands.ts'
import type { Command } from './commands.ts'
import { ControlMachine } from './control-machine.ts'
import type { ControlPlaneIdentity, ControlPlaneOptions } from './control-options.ts'
import type { ControlStore } from './control-store.ts'
import { LeaderDuties } from './leader-duties.ts'
import { newCommandId } from './proposer.ts'
import type { LogAccess } from './proposer.ts'

export interface ClusterMemberParts {
  readonly clusterId: string
  readonly runtime: Runtime
  readonly log: Log
  readonly network: PeerNetwork
  readonly store: ControlStore
  readonly identity: ControlPlaneIdentity
  readonly start: PeerStart | undefined
  readonly options: ControlPlaneOptions
  readonly onStateChange: () => void
  readonly onLeadershipChange: () => void
  readonly onFatal: (error: Error) => void
}

export class ClusterMember implements LogAccess {
  readonly clusterId: string
  readonly machine: ControlMachine
  readonly raft: RaftDriver
  readonly duties: LeaderDuties
  readonly #parts: ClusterMemberParts

  private constructor(parts: ClusterMemberParts, machine: ControlMachine, raft: RaftDriver) {
    const { runtime, network, log, identity: { node, address, zone } } = parts
    this.#parts = parts
    this.clusterId = parts.clusterId
    this.machine = machine
    this.raft = raft
    this.duties = new LeaderDuties({
      node, address, zone, start: parts.start, clock: runtime.clock, log, network, raft,
      state: () => machine.state,
      newCommandId: () => newCommandId(runtime.random),
      proposeHere: (command, context) => this.propose(command, context),
    })
  }

  static async open(parts: ClusterMemberParts): Promise<ClusterMember> {
    const { runtime: { clock, random, metrics }, log, network, store, identity, options } = parts
    const machine = new ControlMachine(parts.clusterId, log, parts.onStateChange)
    const raft = await RaftDriver.open({
      node: identity.node, clock, random, log, metrics, store: store.store, machine, options: options.raft,
      send: message => network.control(message.to).sendRaft(message),
      onChange: parts.onLeadershipChange, onFatal: parts.onFatal,
    })
    return new ClusterMember(parts, machine, raft)
  }

  get leader(): string | null { return this.raft.leader }
  get voters(): readonly string[] { return this.raft.configuration.voters }

  waitApplied(index: number, timeoutMs: number): Promise<boolean> { return this.raft.waitApplied(index, timeoutMs) }

  /** Names of the other members with an open link. */
  connected(): readonly string[] {
    return this.#parts.network.connected().filter(peer => peer.clusterId === this.clusterId).map(peer => peer.node)
  }

  /**
   * Handles a proposal as the leader, or returns the name of the leader.
   * @throws ReplicaError `protocol` when the proposal is malformed
   */
  async propose(value: unknown, context: CallContext): Promise<ProposeReply> {
    const { raft, duties } = this
    if (!raft.leads) return { kind: 'not-leader', leader: raft.leader }
    if (isReadIndex(value)) {
      const index = await raft.readIndex(context.timeoutMs)
      return index === null ? { kind: 'not-leader', leader: raft.leader } : { kind: 'applied', index, result: null }
    }
    const command = checked(value)
    const verdict = command.type === 'admit-node' ? await duties.checkAdmission(command, context) : null
    if (verdict) return { kind: 'applied', index: raft.applied, result: verdict }
    const outcome = await raft.propose(encodeCommand(command), context)
    if (outcome.kind === 'not-leader') return { kind: 'not-leader', leader: raft.leader }
    // The other members receive the decision before the client does, so that a client that uses another node for its
    // next request finds the change there.
    if (outcome.kind === 'applied') {
      await raft.waitSpread(
        outcome.index, () => this.#reachable(), Math.min(this.#parts.options.spreadMs, context.timeoutMs / 2),
      )
    }
    return outcome
  }

  async stop(): Promise<void> {
    await this.raft.stop()
    await this.duties.stop()
  }

  /** The members to which a decision can be sent at once. */
  #reachable(): readonly string[] {
    const { voters, learners } = this.raft.configuration
    const connected = this.connected()
    return [...voters, ...learners].filter(node => connected.includes(node) && this.raft.isActive(node))
  }
}

function checked(value: unknown): Command {
  try {
    return checkCommand(value)
  } catch (error) {
    throw error instanceof CommandError ? new ReplicaError('protocol', error.message, { cause: error }) : error
  }
}

function isReadIndex(value: unknown): boolean {
  return typeof value === 'object' && value !== null && (value as { type?: unknown }).type === 'read-index'
}
