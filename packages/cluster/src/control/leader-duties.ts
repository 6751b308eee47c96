/**
 * The duties of the leader: it decides about admissions, adapts the log's configuration to the members, and adds
 * replicas to databases when there are nodes for them. Everything is derived from the state, so that the next leader
 * continues where this one stopped.
 */
import type { CallContext, PeerNetwork, PeerStart, ProposeReply } from '@sectional/core'
import type { Clock, Log, Timer } from '@sectional/runtime'
import { nextConfigurationChange } from '../consensus/configuration.ts'
import type { RaftDriver } from '../consensus/raft-driver.ts'
import type { Command, CommandBody, CommandResult } from './commands.ts'
import { LackingDatabases } from './lacking-databases.ts'
import { isLate, isOutdated } from './node-start.ts'
import { memberOf, usableMembers } from './state-machine.ts'
import type { ControlState } from './state-machine.ts'

/** Databases that one command extends. It bounds the size of the entry and the anti-entropy that the entry starts. */
const databasesPerExtension = 50
/** Milliseconds between two checks of whether a learner has caught up. */
const dutyIntervalMs = 250
const dutyTimeoutMs = 5000

export interface LeaderDutyParts {
  readonly node: string
  readonly address: string
  readonly zone: string | null
  readonly start: PeerStart | undefined
  readonly clock: Clock
  readonly log: Log
  readonly network: PeerNetwork
  readonly raft: RaftDriver
  readonly state: () => ControlState
  readonly newCommandId: () => string
  readonly proposeHere: (command: Command, context: CallContext) => Promise<ProposeReply>
}

export class LeaderDuties {
  readonly #parts: LeaderDutyParts
  #timer: Timer | undefined
  #work: Promise<void> = Promise.resolve()
  #working = false
  #stopped = false
  #extendedAt = -1
  readonly #lacking = new LackingDatabases()

  constructor(parts: LeaderDutyParts) {
    this.#parts = parts
  }

  /** Call this when the leader, the state or the membership may have changed. */
  changed(): void {
    if (this.#stopped || this.#working || !this.#parts.raft.leads) return
    this.#working = true
    this.#work = this.#run()
      .catch((error: unknown) => this.#parts.log.warn({ err: error }, 'a duty of the leader failed; trying again'))
      .finally(() => { this.#working = false; this.#schedule() })
  }

  /**
   * Returns the result of a request for admission that must not enter the log, or null when the log may decide it.
   *
   * A fresh node (empty disk) that uses a member's name is taken for that member after the loss of its disk, on two
   * conditions: it has the member's address, which only one process can hold, and the member has no other link.
   * Otherwise it is a different node that was given the name by mistake, and it is refused. Because the request may be
   * old and its sender may have become a member since, the leader must also have a link that shows the node to be
   * empty.
   *
   * The old membership of a member that lost its disk ends first: `forget-node` removes the name from the voters and
   * marks its replicas as filling. The name may be admitted again, as a learner, only when the configuration without it
   * is committed. A voter that forgot its votes and its log must not continue as that voter. The same holds for a
   * removed node that asks again before its vote has ended.
   */
  async checkAdmission(
    command: Command & { readonly type: 'admit-node' }, context: CallContext,
  ): Promise<CommandResult | null> {
    const { raft, network, node } = this.#parts
    const state = this.#parts.state()
    const member = memberOf(state, command.node)
    if (isLate(member?.start, command.start)) return this.#answerLate(command, context)
    if (!command.fresh) return this.#checkOutdated(command, state)
    const { voters, learners } = raft.configuration
    const present = voters.includes(command.node) || learners.includes(command.node)
    // The first node of a cluster is a voter before it is a member.
    if (!member) return present && command.node !== node ? { kind: 'later' } : null
    if (member.address !== command.address) {
      return {
        kind: 'refused',
        reason: `${command.node} is a member at ${member.address}: give this node another name, `
          + 'or remove that member first if it is lost',
      }
    }
    const links = network.connected().filter(peer => peer.node === command.node)
    if (links.some(({ clusterId }) => clusterId === state.clusterId) || command.node === node) {
      return { kind: 'refused', reason: `the member ${command.node} at ${member.address} is up` }
    }
    if (state.lost.includes(command.node)) return present ? { kind: 'later' } : null
    if (!present || (learners.includes(command.node) && raft.matchOf(command.node) === 0)) return null
    if (!links.some(({ clusterId }) => clusterId === null)) return { kind: 'later' }
    this.#parts.log.warn(
      { joining: command.node, address: command.address },
      'a member came back with an empty disk: its old membership ends first',
    )
    await this.#parts.proposeHere({ type: 'forget-node', node: command.node, id: this.#parts.newCommandId() }, context)
    return { kind: 'later' }
  }

  /**
   * Handles the announcement of a start that is not the newest one, which normally has no effect. If the announcing
   * process has a link all the same, the log took a late request of another disk for the newest start. The node is then
   * admitted again like a node with an older copy of its data.
   */
  async #answerLate(
    { node, start }: Command & { readonly type: 'admit-node' }, context: CallContext,
  ): Promise<CommandResult> {
    const isLinked = this.#parts.network.connected()
      .some(peer => peer.node === node && peer.clusterId !== null && peer.start?.ids[0] === start?.ids[0])
    if (isLinked) {
      await this.#parts.proposeHere(
        { type: 'forget-node', node, outdated: true, id: this.#parts.newCommandId() }, context,
      )
    }
    return { kind: 'later' }
  }

  /**
   * Decides whether a member with an older copy of its data directory may give it up. It may only when the committed
   * configuration does not include it. Until then it continues to store entries, because with two voters nothing could
   * be committed without it.
   */
  #checkOutdated(
    { node, start }: Command & { readonly type: 'admit-node' }, state: ControlState,
  ): CommandResult | null {
    if (!state.lost.includes(node) || !isOutdated(memberOf(state, node)?.start, start)) return null
    const { voters, learners } = this.#parts.raft.committedConfiguration
    return { kind: [...voters, ...learners].includes(node) ? 'later' : 'outdated' }
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#timer?.cancel()
    await this.#work
  }

  #schedule(): void {
    this.#timer?.cancel()
    if (this.#stopped || !this.#parts.raft.leads || !this.#pending()) return
    this.#timer = this.#parts.clock.setTimer(dutyIntervalMs, () => this.changed())
  }

  /** Returns whether there is work that no event announces. */
  #pending(): boolean {
    const { voters, learners } = this.#parts.raft.configuration
    const members = this.#members()
    const present = [...voters, ...learners]
    return learners.length > 0 || present.length !== members.length || members.some(node => !present.includes(node))
      || this.#extendedAt !== this.#parts.state().index
  }

  #members(): readonly string[] { return Object.keys(usableMembers(this.#parts.state())) }

  async #run(): Promise<void> {
    const { raft, node, address, zone } = this.#parts
    const state = this.#parts.state()
    if (Object.keys(state.nodes).length === 0) {
      await this.#propose({
        type: 'admit-node', node, address, zone, fresh: true, ...this.#parts.start && { start: this.#parts.start },
      })
      return
    }
    for (const member of raft.wentBack()) {
      if (memberOf(state, member) === undefined || memberOf(state, member)?.start?.id === '') continue
      this.#parts.log.warn({ member }, 'a member no longer has entries of the metadata log that it had acknowledged: '
        + 'its data directory is an older copy, and it is treated as lost')
      await this.#propose({ type: 'forget-node', node: member, outdated: true })
    }
    this.#changeConfiguration()
    const lacking = this.#lacking.update(state)
    this.#extendedAt = state.index
    if (lacking.size === 0 || !raft.leads) return
    const names = [...lacking].slice(0, databasesPerExtension)
    this.#parts.log.info(
      { databases: names.length, left: lacking.size - names.length }, 'adding replicas on members that joined later',
    )
    await this.#propose({ type: 'extend-databases', names })
  }

  #changeConfiguration(): void {
    const { raft, node } = this.#parts
    const change = nextConfigurationChange(raft.configuration, {
      members: this.#members(), leader: node, caughtUp: learner => raft.caughtUp(learner),
    })
    if (change && raft.changeConfiguration(change) === 'started') {
      this.#parts.log.info({ change: change.kind, member: change.node }, 'changing the members of the metadata log')
    }
  }

  async #propose(command: CommandBody): Promise<void> {
    await this.#parts.proposeHere({ ...command, id: this.#parts.newCommandId() }, { timeoutMs: dutyTimeoutMs })
  }
}
