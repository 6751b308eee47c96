/**
 * One node's control plane: joins or forms the cluster, keeps its part of the log, answers peers, and gives the
 * rest of the node the `ControlPlane` interface.
 */
import { ApiError, ReplicaError } from '@sectional/core'
import type { CallContext, HashRange, JoinReply, JoinRequest, NodeQuestion, PeerNetwork, PeerStatus, ProposeReply, RaftMessage, ShardId, ShardReplica, VotingConfiguration } from '@sectional/core'
import type { Log, Runtime } from '@sectional/runtime'
import { RaftDriver } from '../consensus/raft-driver.ts'
import { RaftStorage } from '../consensus/raft-storage.ts'
import { AbsenceCheck } from './absence-check.ts'
import type { ClusterState, DatabaseRecord, DatabaseSecurity } from './cluster-state.ts'
import { checkCommand, CommandError, encodeCommand } from './commands.ts'
import type { Command, CommandBody, CommandResult } from './commands.ts'
import { ControlMachine } from './control-machine.ts'
import type { ControlPlaneIdentity, ControlPlaneOptions } from './control-options.ts'
import { controlPeer } from './control-peer.ts'
import type { ControlPlane, CreateDatabaseOptions, DatabaseOption } from './control-plane.ts'
import { ControlStore, controlStoreName } from './control-store.ts'
import { DeleteIntents, maxDeleteIntents } from './intents.ts'
import { LeaderDuties } from './leader-duties.ts'
import { Membership } from './membership.ts'
import { Proposer } from './proposer.ts'
import { memberOf } from './state-machine.ts'
import type { ControlState } from './state-machine.ts'

export interface ControlPlaneParts {
  readonly runtime: Runtime
  readonly network: PeerNetwork
  readonly identity: ControlPlaneIdentity
  readonly options: ControlPlaneOptions
  /** This node's local replicas, for its peers. */
  readonly replica: (shard: ShardId) => ShardReplica | undefined
  /** This node's answers to `ControlPlane.ask`. */
  readonly answer: (question: NodeQuestion, argument: unknown) => Promise<unknown>
  /** Consensus broke an invariant (damaged store, unknown command): the process must not go on. */
  readonly onFatal: (error: Error) => void
}

/** What exists once the node belongs to a cluster. */
interface Member { readonly clusterId: string; readonly machine: ControlMachine; readonly raft: RaftDriver; readonly duties: LeaderDuties }

export class ControlPlaneNode implements ControlPlane {
  readonly node: string
  private readonly parts: ControlPlaneParts
  private readonly log: Log
  private readonly listeners = new Set<(state: ClusterState) => void>()
  private readonly proposer: Proposer
  private readonly membership: Membership
  private readonly absence: AbsenceCheck
  private store: ControlStore | undefined
  private intents: DeleteIntents | undefined
  private member: Member | undefined
  private refusal: string | null = null
  private confirmedOnce = false
  private leaderSeenAt = 0
  private visible: { readonly of: ControlState; readonly state: ClusterState } | undefined
  private unsubscribe: () => void = () => {}
  private stopped = false

  constructor(parts: ControlPlaneParts) {
    const { runtime, network, identity, options } = parts
    const { clock, random } = runtime
    this.parts = parts
    this.node = identity.node
    this.log = runtime.log.child({ component: 'control' })
    this.proposer = new Proposer({ node: identity.node, clock, random, network, say: this.log, attemptMs: options.attemptMs, retryMs: options.retryMs, log: () => this.logAccess() })
    this.absence = new AbsenceCheck(clock, options.confirmIntervalMs, () => this.catchUp())
    this.membership = new Membership({
      self: { node: identity.node, address: identity.address, zone: identity.zone }, seeds: identity.seeds,
      clock, random, log: this.log, network,
      intervalMs: options.joinIntervalMs, maxIntervalMs: options.joinMaxIntervalMs, callTimeoutMs: options.joinCallMs,
      clusterId: () => this.member?.clusterId ?? null,
      mustAnnounce: () => this.mustAnnounce(),
      onMemberRound: () => this.confirm(),
      bootstrap: () => this.bootstrap(),
      adopt: clusterId => this.adopt(clusterId),
      onRefusal: reason => { this.refusal = reason },
    })
  }

  /**
   * Reads the disk, opens the cluster listener and begins to join or form a cluster, which may take as long as
   * it takes. @throws Error when the address cannot be bound, or the disk belongs to another node
   */
  async start(): Promise<void> {
    const { runtime, network, identity, replica } = this.parts
    this.store = new ControlStore(await runtime.storage.open(controlStoreName))
    this.intents = new DeleteIntents({
      clock: runtime.clock, log: this.log, store: this.store, retryMs: this.parts.options.intentRetryMs,
      submit: command => this.proposer.submit(command, this.parts.options.proposeMs),
      onChange: () => this.stateChanged(),
    })
    await this.intents.load()
    const stored = this.store.identity()
    if (stored && stored.node !== identity.node) throw new Error(`the data directory belongs to node ${stored.node}, not to ${identity.node}: correct the node's name or its data directory`)
    if (stored) await this.openMember(stored.clusterId)
    network.setIdentity({ node: identity.node, address: identity.address, clusterId: stored?.clusterId ?? null })
    this.unsubscribe = network.onChange((peer, up) => this.peerChanged(peer.node, up))
    await network.start({ control: from => controlPeer(this.peerHost(), this.node, from), replica })
    this.updatePeers()
    this.intents.start()
    this.membership.start()
  }

  async stop(): Promise<void> {
    if (this.stopped) return
    this.stopped = true
    this.unsubscribe()
    this.listeners.clear()
    this.absence.stop()
    this.proposer.stop()
    await this.parts.network.stop()
    await this.membership.stop()
    await this.member?.raft.stop()
    await this.member?.duties.stop()
    await this.intents?.stop()
    await this.store?.store.close()
  }

  // What this node knows

  state(): ClusterState | null {
    const state = this.member?.machine.state
    if (!state || state.index === 0) return null
    if (this.visible?.of !== state) this.visible = { of: state, state: this.withoutHidden(state) }
    return this.visible.state
  }

  /** The state as the log has it, databases with a promised deletion included: for `compareInventory`. */
  appliedState(): ClusterState | null { return this.member?.machine.state ?? null }

  /** Since its start this node has caught up with the leader once: what its state does not list is not there. */
  confirmed(): boolean { return this.confirmedOnce }

  onChange(listener: (state: ClusterState) => void): () => void {
    this.listeners.add(listener)
    return () => { this.listeners.delete(listener) }
  }

  unavailableReason(): string | null {
    if (this.refusal !== null) return `this node is not admitted: ${this.refusal}`
    if (!this.member) return 'this node has not been admitted to a cluster yet'
    const { state } = this.member.machine
    if (state.index === 0) return 'this node has not received the cluster\'s metadata yet'
    if (!memberOf(state, this.node)) return 'this node is not a member of its cluster, by the metadata it has received so far'
    return null
  }

  connectedNodes(): readonly string[] {
    const clusterId = this.member?.clusterId ?? null
    const peers = clusterId === null ? [] : this.parts.network.connected().filter(peer => peer.clusterId === clusterId).map(peer => peer.node)
    return [...new Set([this.node, ...peers])].sort()
  }

  leader(): string | null { return this.member?.raft.leader ?? null }

  /** Who votes on the metadata and who only learns; null while this node is not admitted. */
  votingConfiguration(): VotingConfiguration | null { return this.member?.raft.configuration ?? null }

  // Changes

  async createDatabase(name: string, options: CreateDatabaseOptions): Promise<DatabaseRecord> {
    const { random } = this.parts.runtime
    const incarnation = Buffer.from(random.bytes(16)).toString('hex')
    const seed = Math.floor(random.fraction() * 0x1_0000_0000)
    await this.keepPromise(name)
    const result = await this.submit({ type: 'create-database', name, incarnation, q: options.q, n: options.n, partitioned: options.partitioned, seed })
    if (result.kind === 'exists') throw new ApiError('file_exists')
    const record = this.member?.machine.state.databases.get(name)
    if (record?.incarnation !== incarnation) throw new ApiError('database_missing', 'The database was created and deleted again at the same time.')
    return record
  }

  /** A name whose deletion was promised here becomes free only when the log has that deletion. */
  private async keepPromise(name: string): Promise<void> {
    const hidden = this.member?.machine.state.databases.get(name)
    if (hidden && this.intents?.hides(hidden.incarnation)) await this.proposer.submit({ type: 'delete-database', name, incarnation: hidden.incarnation }, this.parts.options.proposeMs)
  }

  async deleteDatabase(name: string): Promise<'deleted' | 'accepted'> {
    const record = await this.require(name)
    const command: CommandBody = { type: 'delete-database', name, incarnation: record.incarnation }
    try {
      this.expect(await this.proposer.submit(command, this.parts.options.deleteMs))
      return 'deleted'
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 503 || !this.intents || this.intents.size >= maxDeleteIntents) throw error
      await this.intents.add({ name, incarnation: record.incarnation })
      return 'accepted'
    }
  }

  async setSecurity(name: string, security: DatabaseSecurity): Promise<void> {
    const { incarnation } = await this.require(name)
    await this.submit({ type: 'set-security', name, incarnation, security })
  }

  async setDatabaseOption(name: string, option: DatabaseOption): Promise<void> {
    const { incarnation } = await this.require(name)
    await this.submit({ type: 'set-database-option', name, incarnation, option })
  }

  async setSetting(section: string, key: string, value: string | null): Promise<void> {
    await this.submit({ type: 'set-setting', section, key, value })
  }

  async removeNode(node: string): Promise<void> {
    const result = await this.proposer.submit({ type: 'remove-node', node }, this.parts.options.proposeMs)
    if (result.kind === 'missing') throw new ApiError('not_found', `${node} is not a member of the cluster.`)
    this.expect(result)
  }

  async replicaFilled(incarnation: string, range: HashRange, node: string): Promise<void> {
    // `missing` here: the database or the replica is gone, so there is nothing to report any more.
    await this.proposer.submit({ type: 'replica-filled', incarnation, range, node }, this.parts.options.proposeMs)
  }

  async confirmAbsent(name: string): Promise<DatabaseRecord | undefined> {
    const known = this.state()?.databases.get(name)
    if (known || this.leader() === null) return known
    await this.absence.ask()
    return this.state()?.databases.get(name)
  }

  async ask(node: string, question: NodeQuestion, argument: unknown): Promise<unknown> {
    if (node === this.node) return this.parts.answer(question, argument)
    const state = this.member?.machine.state
    if (!state || !memberOf(state, node)) throw new ApiError('not_found', `${node} is not a member of the cluster.`)
    try {
      return await this.parts.network.control(node).ask(question, argument, { timeoutMs: this.parts.options.askMs })
    } catch (error) {
      if (error instanceof ReplicaError) throw new ApiError('nodedown', `${node} does not answer: ${error.message}`, { cause: error })
      throw error
    }
  }

  private async submit(command: CommandBody): Promise<CommandResult> {
    try {
      return this.expect(await this.proposer.submit(command, this.parts.options.proposeMs))
    } catch (error) {
      if (error instanceof CommandError) throw new ApiError('bad_request', error.message, { cause: error })
      throw error
    }
  }

  private expect(result: CommandResult): CommandResult {
    if (result.kind === 'missing') throw new ApiError('database_missing')
    if (result.kind === 'refused') throw new ApiError('bad_request', result.reason)
    return result
  }

  private async require(name: string): Promise<DatabaseRecord> {
    const record = this.state()?.databases.get(name) ?? await this.confirmAbsent(name)
    if (!record) throw new ApiError('database_missing')
    return record
  }

  // Membership

  private async bootstrap(): Promise<void> {
    const { runtime, identity } = this.parts
    const clusterId = Buffer.from(runtime.random.bytes(16)).toString('hex')
    await this.store?.writeIdentity({ clusterId, node: identity.node }, batch => RaftStorage.bootstrap(batch, identity.node))
    this.log.info({ clusterId, node: identity.node }, 'formed a new cluster')
    await this.enter(clusterId)
  }

  private async adopt(clusterId: string): Promise<void> {
    await this.store?.writeIdentity({ clusterId, node: this.parts.identity.node })
    this.log.info({ clusterId, node: this.parts.identity.node }, 'admitted to the cluster')
    await this.enter(clusterId)
  }

  private async enter(clusterId: string): Promise<void> {
    const { network, identity } = this.parts
    if (this.stopped) return
    await this.openMember(clusterId)
    network.setIdentity({ node: identity.node, address: identity.address, clusterId })
    this.updatePeers()
  }

  private async openMember(clusterId: string): Promise<void> {
    const { runtime, network, identity, options, onFatal } = this.parts
    const { clock, random, metrics } = runtime
    if (!this.store) throw new Error('the control plane is not started')
    const machine = new ControlMachine(clusterId, this.log, () => this.stateChanged())
    const raft = await RaftDriver.open({
      node: identity.node, clock, random, log: this.log, metrics, store: this.store.store, machine, options: options.raft, onFatal,
      send: message => network.control(message.to).sendRaft(message),
      onChange: () => this.leadershipChanged(),
    })
    const duties = new LeaderDuties({
      node: identity.node, address: identity.address, zone: identity.zone, clock, log: this.log, network, raft,
      state: () => machine.state,
      newCommandId: () => Buffer.from(random.bytes(16)).toString('hex'),
      proposeHere: (command, context) => this.proposeHere(command, context),
    })
    this.leaderSeenAt = clock.monotonic()
    this.member = { clusterId, machine, raft, duties }
    this.stateChanged()
  }

  private mustAnnounce(): boolean {
    if (!this.member) return false
    const { identity, options, runtime } = this.parts
    const { state } = this.member.machine
    const record = memberOf(state, this.node)
    const outdated = record !== undefined && (record.address !== identity.address || record.zone !== identity.zone)
    const leaderless = this.leader() === null && runtime.clock.monotonic() - this.leaderSeenAt > options.leaderlessMs
    return outdated || leaderless || this.refusal !== null
  }

  private updatePeers(): void {
    const { identity, network } = this.parts
    const members = Object.values(this.member?.machine.state.nodes ?? {}).map(node => node.address)
    network.setPeers([...new Set([...members, ...identity.seeds])].filter(address => address !== identity.address).sort())
  }

  // Events

  private stateChanged(): void {
    this.visible = undefined
    if (this.stopped) return
    this.updatePeers()
    this.member?.duties.changed()
    const state = this.state()
    if (state) for (const listener of [...this.listeners]) listener(state)
  }

  private leadershipChanged(): void {
    if (this.stopped) return
    if (this.leader() !== null) this.leaderSeenAt = this.parts.runtime.clock.monotonic()
    this.proposer.changed()
    this.member?.duties.changed()
    this.confirm()
  }

  /** Catches up with the leader once after the start. */
  private confirm(): void {
    if (!this.confirmedOnce && this.leader() !== null) void this.absence.ask()
  }

  private peerChanged(node: string, up: boolean): void {
    this.log.info({ peer: node, up }, up ? 'link to a peer opened' : 'link to a peer closed')
    this.proposer.changed()
    this.member?.raft.checkSpread()
    this.member?.duties.changed()
    if (up) this.membership.changed()
  }

  /** Learns what the leader has decided before now; gives up quietly, because the log may be out of reach. */
  private async catchUp(): Promise<void> {
    try {
      await this.proposer.catchUp(this.parts.options.confirmMs)
      this.confirmedOnce = true
      const state = this.member?.machine.state
      if (state) await this.intents?.settle(state)
    } catch (error) {
      this.log[error instanceof ApiError ? 'debug' : 'warn']({ err: error }, 'the leader did not confirm the metadata')
    }
  }

  private withoutHidden(state: ControlState): ClusterState {
    const { intents } = this
    if (!intents || intents.size === 0) return state
    return { ...state, databases: new Map([...state.databases].filter(([, database]) => !intents.hides(database.incarnation))) }
  }

  // Answers to peers

  private peerHost() {
    return {
      clusterId: () => this.member?.clusterId ?? null,
      status: () => this.status(),
      step: (message: RaftMessage) => this.member?.raft.step(message),
      propose: (command: unknown, context: CallContext) => this.proposeHere(command, context),
      admit: (request: JoinRequest, fresh: boolean, context: CallContext) => this.admit(request, fresh, context),
      answer: this.parts.answer,
    }
  }

  private status(): PeerStatus {
    const { node, address } = this.parts.identity
    const clusterId = this.member?.clusterId ?? null
    return { node, address, clusterId, fresh: clusterId === null, leader: this.leader() }
  }

  private async admit(request: JoinRequest, fresh: boolean, context: CallContext): Promise<JoinReply> {
    const { node, address, zone } = request
    const clusterId = this.member?.clusterId
    if (clusterId === undefined) return { kind: 'try-later', leader: null }
    try {
      const result = await this.proposer.submit({ type: 'admit-node', node, address, zone, fresh }, Math.min(context.timeoutMs, this.parts.options.proposeMs))
      if (result.kind === 'done') return { kind: 'admitted', clusterId }
      if (result.kind !== 'refused') return { kind: 'try-later', leader: this.leader() }
      this.log.warn({ joining: node, address, reason: result.reason }, 'refused to admit a node')
      return { kind: 'refused', reason: result.reason }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      return { kind: 'try-later', leader: this.leader() }
    }
  }

  private logAccess() {
    const { member } = this
    if (!member || this.stopped) return null
    return {
      leader: member.raft.leader,
      voters: member.raft.configuration.voters,
      propose: (command: unknown, context: CallContext) => this.proposeHere(command, context),
      waitApplied: (index: number, timeoutMs: number) => member.raft.waitApplied(index, timeoutMs),
    }
  }

  /** Handles a proposal as the leader, or says who leads. */
  private async proposeHere(value: unknown, context: CallContext): Promise<ProposeReply> {
    const notLeader: ProposeReply = { kind: 'not-leader', leader: this.leader() }
    const { member } = this
    if (!member?.raft.leads) return notLeader
    if (isReadIndex(value)) {
      const index = await member.raft.readIndex(context.timeoutMs)
      return index === null ? notLeader : { kind: 'applied', index, result: null }
    }
    const command = this.checked(value)
    const verdict = command.type === 'admit-node' ? await member.duties.checkAdmission(command, context) : null
    if (verdict) return { kind: 'applied', index: member.raft.applied, result: verdict }
    const outcome = await member.raft.propose(encodeCommand(command), context)
    if (outcome.kind === 'not-leader') return { kind: 'not-leader', leader: this.leader() }
    if (outcome.kind === 'applied') await member.raft.waitSpread(outcome.index, () => this.reachable(member), Math.min(this.parts.options.spreadMs, context.timeoutMs / 2))
    return outcome
  }

  private checked(value: unknown): Command {
    try {
      return checkCommand(value)
    } catch (error) {
      throw error instanceof CommandError ? new ReplicaError('protocol', error.message, { cause: error }) : error
    }
  }

  /** Members that ought to hear of a decision at once. */
  private reachable(member: Member): readonly string[] {
    const { voters, learners } = member.raft.configuration
    const connected = this.connectedNodes()
    return [...voters, ...learners].filter(node => connected.includes(node) && member.raft.isActive(node))
  }
}

function isReadIndex(value: unknown): boolean {
  return typeof value === 'object' && value !== null && (value as { type?: unknown }).type === 'read-index'
}
