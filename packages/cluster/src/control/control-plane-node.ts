/**
 * The control plane of one node. It forms or joins a cluster, keeps this node's part of the log, answers peers, and
 * offers the `ControlPlane` interface to the rest of the node.
 */
import { ApiError, ReplicaError } from '@sectional/core'
import type {
  CallContext, HashRange, IndexReplica, JoinReply, JoinRequest, NodeQuestion, PeerIdentity, PeerNetwork, PeerStart,
  PeerStatus, ShardId, ShardReplica, VotingConfiguration,
} from '@sectional/core'
import { sleep, StorageError } from '@sectional/runtime'
import type { Log, Runtime } from '@sectional/runtime'
import { RaftStorage } from '../consensus/raft-storage.ts'
import { AbsenceCheck } from './absence-check.ts'
import { ClusterMember } from './cluster-member.ts'
import type { ClusterState, DatabaseRecord, DatabaseSecurity } from './cluster-state.ts'
import type { ControlPlaneIdentity, ControlPlaneOptions } from './control-options.ts'
import { controlPeer } from './control-peer.ts'
import type { ControlPeerHost } from './control-peer.ts'
import type { ControlPlane, CreateDatabaseOptions, DatabaseOption } from './control-plane.ts'
import { ControlStore, newClusterId } from './control-store.ts'
import { DatabaseChanges } from './database-changes.ts'
import { DatabaseMap } from './database-map.ts'
import { ForeignClusters } from './foreign-clusters.ts'
import { DeleteIntents } from './intents.ts'
import { Membership } from './membership.ts'
import { Proposer } from './proposer.ts'
import { confirmedStart, isInDoubt, isOutdated } from './node-start.ts'
import { ignoredLeaderReason, metadataLagMs, unmetReason } from './readiness.ts'
import type { ReadinessFacts } from './readiness.ts'
import { memberOf } from './state-machine.ts'
import type { ControlState } from './state-machine.ts'
import { StartWait } from './start-wait.ts'

export interface ControlPlaneParts {
  readonly runtime: Runtime
  readonly network: PeerNetwork
  readonly identity: ControlPlaneIdentity
  readonly options: ControlPlaneOptions
  /** Returns this node's local replica of a shard; peers reach it through the network. */
  readonly replica: (shard: ShardId) => ShardReplica | undefined
  /** Returns the indexes of this node's local replica of a shard; peers reach them through the network. */
  readonly indexes: (shard: ShardId) => IndexReplica | undefined
  /** Answers questions that other nodes put with `ControlPlane.ask`. */
  readonly answer: (question: NodeQuestion, argument: unknown) => Promise<unknown>
  /** Called when a peer reports that a design document of a database, named by its incarnation, has changed. */
  readonly onDesignChange?: (incarnation: string) => void
  /**
   * Gives every replica on this node's disk a new history and keeps its documents. Replicas are not served before this
   * has resolved.
   */
  readonly renewReplicas: () => Promise<void>
  /** Called when this node has given up its data directory: the whole node must be closed and opened again. */
  readonly onGivenUp: () => void
  /** Called when consensus broke an invariant (damaged store, unknown command): the process must stop. */
  readonly onFatal: (error: Error) => void
}

export class ControlPlaneNode implements ControlPlane {
  readonly node: string
  readonly #parts: ControlPlaneParts
  readonly #log: Log
  readonly #listeners = new Set<(state: ClusterState) => void>()
  readonly #proposer: Proposer
  readonly #changes: DatabaseChanges
  readonly #membership: Membership
  readonly #absence: AbsenceCheck
  readonly #foreign: ForeignClusters
  #startWait: StartWait | undefined
  #store: ControlStore | undefined
  #intents: DeleteIntents | undefined
  #member: ClusterMember | undefined
  #refusal: string | null = null
  #ownStart: PeerStart | undefined
  #renewing = false
  #givenUp = false
  #confirmedOnce = false
  #memberAtStart = false
  #leaderSeenAt = 0
  /** The ignored leader that was logged last. */
  #ignoredLeader: string | null = null
  #visible: { readonly of: ControlState; readonly state: ClusterState } | undefined
  #unsubscribe: () => void = () => {}
  #stopped = false
  readonly #stopping = new AbortController()

  constructor(parts: ControlPlaneParts) {
    const { runtime, network, identity, options } = parts
    const { clock, random } = runtime
    this.#parts = parts
    this.node = identity.node
    this.#log = runtime.log.child({ component: 'control' })
    this.#proposer = new Proposer({
      node: identity.node, clock, random, network, say: this.#log, attemptMs: options.attemptMs,
      retryMs: options.retryMs,
      log: () => this.#stopped ? null : this.#member ?? null,
      diskTrouble: () => this.#diskTrouble(),
    })
    this.#changes = new DatabaseChanges({
      random, proposer: this.#proposer, options, intents: () => this.#intents,
      applied: name => this.#member?.machine.state.databases.get(name),
      find: name => this.confirmAbsent(name),
    })
    this.#absence = new AbsenceCheck(clock, options.confirmIntervalMs, () => this.#catchUp())
    this.#foreign = new ForeignClusters({
      node: identity.node, seeds: identity.seeds, log: this.#log, state: () => this.appliedState(),
    })
    this.#membership = this.#createMembership()
  }

  /**
   * Reads the disk, opens the cluster listener and begins to join or form a cluster. Joining continues in the
   * background without a time limit.
   * @throws Error when the address cannot be bound, or the data directory belongs to another node
   */
  async start(): Promise<void> {
    const { runtime, network, identity, options, replica, indexes } = this.#parts
    this.#store = await ControlStore.open(runtime.storage)
    this.#intents = new DeleteIntents({
      clock: runtime.clock, log: this.#log, store: this.#store, retryMs: options.intentRetryMs,
      submit: command => this.#proposer.submit(command, options.proposeMs),
      onChange: () => this.#stateChanged(),
    })
    await this.#intents.load()
    this.#ownStart = await this.#recordStart(this.#store)
    const stored = this.#store.identity()
    if (stored && stored.node !== identity.node) {
      throw new Error(`the data directory belongs to node ${stored.node}, not to ${identity.node}: `
        + 'correct the node\'s name or its data directory')
    }
    this.#memberAtStart = stored !== null
    if (stored) await this.#openMember(stored.clusterId)
    network.setIdentity(this.#ownIdentity(stored?.clusterId ?? null))
    const unsubscribes = [
      network.onChange((peer, up) => this.#peerChanged(peer.node, up)),
      network.onForeign(contact => this.#foreign.found(contact)),
    ]
    this.#unsubscribe = () => { for (const unsubscribe of unsubscribes) unsubscribe() }
    this.#renewing = this.#store.givenUp()
    await network.start({
      control: from => controlPeer(this.#peerHost(), this.node, from),
      replica: (shard, from) => {
        this.#assertNoOlderCopy(from)
        return replica(shard)
      },
      indexes,
    })
    this.#updatePeers()
    this.#startWait = new StartWait(runtime.clock, options.startWaitMs, {
      untried: () => network.untried(),
      voters: () => this.#member?.raft.configuration.voters ?? [],
      connected: () => this.connectedNodes(),
      confirmed: () => this.#confirmedOnce,
      recorded: () => !this.#mustRecordStart(),
    })
    this.#intents.start()
    if (this.#renewing) void this.#renewReplicas(this.#store)
    else this.#membership.start()
  }

  async stop(): Promise<void> {
    if (this.#stopped) return
    this.#stopped = true
    this.#stopping.abort()
    this.#unsubscribe()
    this.#listeners.clear()
    this.#absence.stop()
    this.#proposer.stop()
    await this.#parts.network.stop()
    await this.#membership.stop()
    await this.#member?.stop()
    await this.#intents?.stop()
    await this.#store?.store.close()
  }

  // The state of this node

  state(): ClusterState | null {
    const state = this.#member?.machine.state
    if (!state || state.index === 0) return null
    if (this.#visible?.of !== state) this.#visible = { of: state, state: this.#withoutHidden(state) }
    return this.#visible.state
  }

  /**
   * The state as the log has built it, including databases whose deletion was promised. A node keeps and drops its
   * replicas by this state.
   */
  appliedState(): ClusterState | null { return this.#member?.machine.state ?? null }

  /**
   * True after this node has caught up with the leader once since its start. From then on, a database that its state
   * does not list does not exist.
   */
  confirmed(): boolean { return this.#confirmedOnce }

  /** Whether this node belonged to a cluster when its process started, by its disk. */
  startedAsMember(): boolean { return this.#memberAtStart }

  /** The voters and learners of the metadata log; null while this node is not admitted. */
  votingConfiguration(): VotingConfiguration | null { return this.#member?.raft.configuration ?? null }

  onChange(listener: (state: ClusterState) => void): () => void {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  unavailableReason(): string | null { return unmetReason(this.#readinessFacts(), 'requests') }

  writesRefusedReason(): string | null { return unmetReason(this.#readinessFacts(), 'writes') }

  notReadyReason(): string | null { return unmetReason(this.#readinessFacts(), 'traffic') }

  connectedNodes(): readonly string[] { return [...new Set([this.node, ...this.#member?.connected() ?? []])].sort() }

  leader(): string | null { return this.#member?.leader ?? null }

  // Changes

  createDatabase(name: string, options: CreateDatabaseOptions): Promise<DatabaseRecord> {
    return this.#changes.createDatabase(name, options)
  }
  deleteDatabase(name: string): Promise<'deleted' | 'accepted'> { return this.#changes.deleteDatabase(name) }
  setSecurity(name: string, security: DatabaseSecurity, replaced?: DatabaseSecurity): Promise<void> {
    return this.#changes.setSecurity(name, security, replaced)
  }
  setDatabaseOption(name: string, option: DatabaseOption): Promise<void> {
    return this.#changes.setDatabaseOption(name, option)
  }
  setSetting(section: string, key: string, value: string | null): Promise<void> {
    return this.#changes.setSetting(section, key, value)
  }
  removeNode(node: string): Promise<void> { return this.#changes.removeNode(node) }
  replicaFilled(incarnation: string, range: HashRange, node: string): Promise<void> {
    return this.#changes.replicaFilled(incarnation, range, node)
  }

  replicaDamaged(incarnation: string, range: HashRange, node: string): Promise<boolean> {
    return this.#changes.replicaDamaged(incarnation, range, node)
  }

  async confirmAbsent(name: string): Promise<DatabaseRecord | undefined> {
    const known = this.state()?.databases.get(name)
    if (known) return known
    const confirmed = this.leader() !== null && await this.#absence.ask()
    const found = this.state()?.databases.get(name)
    // After a start the metadata on this disk can be older than what this node knew before: the commit index is written
    // with a delay.
    if (!found && !this.#confirmedOnce) {
      throw new ApiError(
        'service_unavailable',
        'This node has just started and does not know yet whether the database exists. Try again.',
        { headers: { 'Retry-After': '1' } },
      )
    }
    if (!found && !confirmed && (this.leader() !== null || this.#diskTrouble() !== null)) {
      const cause = this.#diskTrouble() ?? 'it has not caught up with their leader'
      const reason = `This node's metadata may be old (${cause}), so it cannot tell whether the database exists. `
        + 'Ask another node, or try again.'
      throw new ApiError('service_unavailable', reason, {
        headers: { 'Retry-After': '5' },
      })
    }
    return found
  }

  async ask(node: string, question: NodeQuestion, argument: unknown): Promise<unknown> {
    if (node === this.node) return this.#parts.answer(question, argument)
    const state = this.#member?.machine.state
    if (!state || !memberOf(state, node)) throw new ApiError('not_found', `${node} is not a member of the cluster.`)
    try {
      return await this.#parts.network.control(node)
        .ask({ question, argument }, { timeoutMs: this.#parts.options.askMs })
    } catch (error) {
      if (error instanceof ReplicaError) {
        throw new ApiError('nodedown', `${node} does not answer: ${error.message}`, { cause: error })
      }
      throw error
    }
  }

  // Membership

  #createMembership(): Membership {
    const { runtime: { clock, random }, network, identity: { node, address, zone, seeds }, options } = this.#parts
    return new Membership({
      self: { node, address, zone }, seeds, clock, random, log: this.#log, network,
      intervalMs: options.joinIntervalMs, maxIntervalMs: options.joinMaxIntervalMs, callTimeoutMs: options.joinCallMs,
      formationGraceMs: options.formationGraceMs,
      clusterId: () => this.#member?.clusterId ?? null,
      mustAnnounce: () => this.#mustAnnounce(),
      leader: () => this.leader(),
      onMemberRound: () => this.#confirm(),
      bootstrap: () => this.#bootstrap(),
      adopt: clusterId => this.#adopt(clusterId),
      onOutdated: () => this.#giveUp(),
      onRefusal: reason => { this.#refusal = reason },
    })
  }

  async #bootstrap(): Promise<void> {
    const clusterId = newClusterId(this.#parts.runtime.random)
    await this.#store?.writeIdentity({ clusterId, node: this.node }, batch => RaftStorage.bootstrap(batch, this.node))
    this.#log.info({ clusterId }, 'formed a new cluster')
    await this.#enter(clusterId)
  }

  async #adopt(clusterId: string): Promise<void> {
    await this.#store?.writeIdentity({ clusterId, node: this.node })
    this.#log.info({ clusterId }, 'admitted to the cluster')
    await this.#enter(clusterId)
  }

  async #enter(clusterId: string): Promise<void> {
    if (this.#stopped) return
    await this.#openMember(clusterId)
    this.#parts.network.setIdentity(this.#ownIdentity(clusterId))
    this.#updatePeers()
  }

  async #openMember(clusterId: string): Promise<void> {
    const { runtime, network, identity, options, onFatal } = this.#parts
    if (!this.#store) throw new Error('the control plane is not started')
    this.#member = await ClusterMember.open({
      clusterId, runtime, network, identity, start: this.#ownStart, options, log: this.#log, store: this.#store,
      onFatal,
      onStateChange: () => this.#stateChanged(), onLeadershipChange: () => this.#leadershipChanged(),
    })
    this.#leaderSeenAt = runtime.clock.monotonic()
    this.#stateChanged()
  }

  #readinessFacts(): ReadinessFacts {
    const state = this.#member?.machine.state
    const record = state && memberOf(state, this.node)
    return {
      node: this.node,
      refusal: this.#refusal,
      admitted: state !== undefined,
      appliedIndex: state?.index ?? 0,
      listed: record !== undefined,
      rival: this.#parts.network.rivalReason(),
      foreignCluster: this.#foreign.reason,
      outdated: isOutdated(record?.start, this.#ownStart),
      renewing: this.#renewing,
      ignoredLeader: this.#member?.raft.ignoredLeader ?? null,
      lacking: (this.#member?.raft.lagMs ?? 0) > metadataLagMs ? this.#member?.raft.lagEntries ?? 0 : 0,
      startWait: this.#startWait?.reason() ?? null,
    }
  }

  #mustAnnounce(): boolean {
    if (!this.#member) return false
    const { identity, options, runtime } = this.#parts
    const record = memberOf(this.#member.machine.state, this.node)
    const outdated = record !== undefined && (record.address !== identity.address || record.zone !== identity.zone)
    const leaderless = !this.#isLed() && runtime.clock.monotonic() - this.#leaderSeenAt > options.leaderlessMs
    return outdated || this.#mustRecordStart() || leaderless || this.#refusal !== null
  }

  /**
   * Returns true while this node receives the metadata from a leader. It knows the leader, but receives none, when its
   * membership has ended before it has heard of it.
   */
  #isLed(): boolean { return this.leader() !== null && this.#member!.machine.state.index > 0 }

  /** Returns true while this member has a start that the metadata does not record yet. */
  #mustRecordStart(): boolean {
    const record = this.#member && memberOf(this.#member.machine.state, this.node)
    return record !== undefined && this.#ownStart !== undefined && record.start?.id !== this.#ownStart.ids[0]
  }

  /**
   * Records this start on disk. Returns undefined when the disk refuses writes: the start is then not announced, and
   * other nodes cannot tell whether this data directory is an older copy.
   */
  async #recordStart(store: ControlStore): Promise<PeerStart | undefined> {
    try {
      return await store.start(this.#parts.runtime.random)
    } catch (error) {
      if (!(error instanceof StorageError) || error.code === 'closed') throw error
      this.#log.warn(
        { err: error }, 'this start could not be recorded on disk, so it is not announced to the other nodes',
      )
      return undefined
    }
  }

  #ownIdentity(clusterId: string | null): PeerIdentity {
    return {
      node: this.node, address: this.#parts.identity.address, clusterId, ...this.#ownStart && { start: this.#ownStart },
    }
  }

  /**
   * Returns whether a peer runs on an older copy of its data directory, according to the log that this node has
   * applied.
   */
  isOutdated({ node, clusterId, start }: PeerIdentity): boolean {
    const state = this.#member?.machine.state
    return state !== undefined && clusterId !== null && isOutdated(memberOf(state, node)?.start, start)
  }

  /**
   * A replica on an older copy assigns sequences again that it had assigned before. Peers must not record them, nor the
   * changes that it pushes under them, because they belong to other changes in the tokens of feeds. Nor must peers
   * write to replicas of this node before these have new histories.
   * @throws ReplicaError
   */
  #assertNoOlderCopy(from: PeerIdentity): void {
    if (this.#renewing) throw new ReplicaError('closed', `the replicas of ${this.node} do not have new histories yet`)
    if (!this.isOutdated(from)) return
    throw new ReplicaError('closed', `the data directory of ${from.node} is an older copy; it is to be admitted anew`)
  }

  #isInDoubt({ node, clusterId, start }: PeerIdentity): boolean {
    const state = this.#member?.machine.state
    return state !== undefined && clusterId !== null && isInDoubt(memberOf(state, node)?.start, start, state.index)
  }

  /**
   * Called when the log votes and counts quorums without this node. The node forgets the cluster and joins again as a
   * node that has lost its disk.
   */
  async #giveUp(): Promise<void> {
    if (!this.#member || this.#stopped || this.#givenUp) return
    const { clusterId, raft: { applied } } = this.#member
    this.#log.warn({ clusterId, applied }, 'the data directory of this node is an older copy of the one that it had: '
      + 'the node gives up its vote and its metadata, gives its replicas new histories, and joins anew; '
      + 'the other nodes then fill its replicas')
    await this.#member.raft.stop()
    await this.#store?.giveUp()
    this.#givenUp = true
    this.#parts.onGivenUp()
  }

  async #renewReplicas(store: ControlStore): Promise<void> {
    while (!this.#stopped) {
      try {
        await this.#parts.renewReplicas()
        await store.forgetGivenUp()
        this.#renewing = false
        if (!this.#stopped) this.#membership.start()
        return
      } catch (error) {
        if (this.#stopped) return
        this.#log.warn(
          { err: error }, 'the replicas of an older data directory could not be given new histories; trying again',
        )
        await sleep(this.#parts.runtime.clock, this.#parts.options.joinMaxIntervalMs, this.#stopping.signal)
      }
    }
  }

  #noteStart(): void {
    const state = this.#member?.machine.state
    const confirmed = state && this.#ownStart ? confirmedStart(this.#ownStart, memberOf(state, this.node)?.start) : null
    if (confirmed === null) return
    this.#ownStart = confirmed
    // A peer whose metadata is older would take this node's data directory for an older copy by the previous record.
    this.#parts.network.setIdentity(this.#ownIdentity(this.#member!.clusterId))
    // A failed write is harmless: the node only announces a recorded start once more.
    this.#store?.writeStart(confirmed)
      .catch((error: unknown) => this.#log.debug({ err: error }, 'the recorded start could not be saved'))
  }

  #updatePeers(): void {
    const { identity, network } = this.#parts
    const names = new Map(
      Object.values(this.#member?.machine.state.nodes ?? {}).map(({ address, name }) => [address, name]),
    )
    network.setPeers(
      [...new Set([...names.keys(), ...identity.seeds])].filter(address => address !== identity.address).sort(), names,
    )
  }

  // Events

  #stateChanged(): void {
    this.#visible = undefined
    if (this.#stopped) return
    this.#updatePeers()
    this.#noteStart()
    this.#member?.duties.changed()
    const state = this.state()
    if (state) for (const listener of [...this.#listeners]) listener(state)
  }

  #leadershipChanged(): void {
    if (this.#stopped) return
    if (this.#isLed()) this.#leaderSeenAt = this.#parts.runtime.clock.monotonic()
    this.#noteIgnoredLeader()
    this.#proposer.changed()
    this.#member?.duties.changed()
    this.#confirm()
  }

  #noteIgnoredLeader(): void {
    const ignored = this.#member?.raft.ignoredLeader ?? null
    if (ignored === this.#ignoredLeader) return
    this.#ignoredLeader = ignored
    if (ignored !== null) this.#log.error({ leader: ignored }, ignoredLeaderReason(ignored))
  }

  #peerChanged(node: string, up: boolean): void {
    this.#proposer.changed()
    this.#member?.raft.checkSpread()
    this.#member?.duties.changed()
    if (up) this.#membership.changed()
  }

  /** Catches up with the leader once after the start. */
  #confirm(): void {
    if (!this.#confirmedOnce && this.leader() !== null) void this.#absence.ask()
  }

  /**
   * Applies everything that the leader had decided before this call. Returns false, without an error, when the leader
   * cannot be reached.
   */
  async #catchUp(): Promise<boolean> {
    try {
      await this.#proposer.catchUp(this.#parts.options.confirmMs)
      const first = !this.#confirmedOnce
      this.#confirmedOnce = true
      const state = this.#member?.machine.state
      if (state) await this.#intents?.settle(state)
      // The removal of garbage waits for this confirmation.
      if (first) this.#stateChanged()
      return true
    } catch (error) {
      this.#log[error instanceof ApiError ? 'debug' : 'warn']({ err: error }, 'the leader did not confirm the metadata')
      return false
    }
  }

  /** The reason why this node cannot write its metadata now, as a clause; null when it can. */
  #diskTrouble(): string | null {
    const failure = this.#member?.raft.writeFailure
    if (!failure) return null
    return failure.code === 'full' ? 'its disk is full' : `its disk fails: ${failure.message}`
  }

  #withoutHidden(state: ControlState): ClusterState {
    const intents = this.#intents
    if (!intents || intents.size === 0) return state
    let databases = DatabaseMap.of(state.databases)
    for (const { name, incarnation } of intents.all()) {
      if (databases.get(name)?.incarnation === incarnation) databases = databases.without(name)
    }
    return { ...state, databases }
  }

  // Answers to peers

  #peerHost(): ControlPeerHost {
    return {
      clusterId: () => this.#member?.clusterId ?? null,
      status: () => this.#status(),
      step: (message, from) => this.#member?.raft.step(message, this.#isInDoubt(from)),
      propose: async (command, context) =>
        await this.#member?.propose(command, context) ?? { kind: 'not-leader', leader: null },
      admit: (request, from, context) => this.#admit(request, from, context),
      answer: this.#parts.answer,
      designChanged: incarnation => this.#parts.onDesignChange?.(incarnation),
    }
  }

  #status(): PeerStatus {
    const clusterId = this.#member?.clusterId ?? null
    return {
      node: this.node, address: this.#parts.identity.address, clusterId, fresh: clusterId === null,
      leader: this.leader(),
    }
  }

  async #admit(
    { node, address, zone }: JoinRequest, { clusterId: theirs, start }: PeerIdentity, context: CallContext,
  ): Promise<JoinReply> {
    const clusterId = this.#member?.clusterId
    if (clusterId === undefined) return { kind: 'try-later', leader: null }
    try {
      const result = await this.#proposer.submit(
        { type: 'admit-node', node, address, zone, fresh: theirs === null, ...start && { start } },
        Math.min(context.timeoutMs, this.#parts.options.proposeMs),
      )
      if (result.kind === 'done') return { kind: 'admitted', clusterId }
      if (result.kind === 'outdated') return { kind: 'outdated' }
      if (result.kind !== 'refused') return { kind: 'try-later', leader: this.leader() }
      this.#log.warn({ joining: node, address, reason: result.reason }, 'refused to admit a node')
      return { kind: 'refused', reason: result.reason }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      return { kind: 'try-later', leader: this.leader() }
    }
  }
}
