/**
 * Forms a new cluster from the data on one node's disk, after a majority of the voters was lost for good. The node must
 * be stopped. Nothing is changed before `carryOut`, which is one atomic write.
 *
 * The new cluster has a new id, so that links to the other old members are refused, and this node is its only voter.
 * Log entries after the commit index are kept, because any of them may have been acknowledged. Databases keep their
 * incarnations, so that the documents on this node's disk still belong to them.
 */
import { compareRanges } from '@sectional/core'
import type { HashRange, VotingConfiguration } from '@sectional/core'
import type { Log, Random, Storage } from '@sectional/runtime'
import { decodeConfiguration } from '../consensus/configuration.ts'
import type { RaftSnapshot } from '../consensus/raft-work.ts'
import { snapshotChecksum } from '../consensus/snapshot-pieces.ts'
import { RaftStorage } from '../consensus/raft-storage.ts'
import type { StoredRaft } from '../consensus/raft-storage.ts'
import { majority } from '../quorum/majority.ts'
import type { DatabaseRecord, NodeRecord } from './cluster-state.ts'
import { ControlMachine } from './control-machine.ts'
import { ControlStore, newClusterId } from './control-store.ts'
import type { StoredIdentity } from './control-store.ts'
import { memberOf } from './state-machine.ts'
import type { ControlState } from './state-machine.ts'
import { encodeState } from './state-snapshot.ts'

/** The data directory does not allow a recovery. The message gives the reason and tells the operator what to do. */
export class RecoveryError extends Error {
  override readonly name = 'RecoveryError'
}

/** A shard that the operator must know about before the new cluster is formed. */
export interface EndangeredShard {
  readonly database: string
  readonly range: HashRange
  readonly otherReplicas: readonly string[]
}

export interface RecoveryReport {
  readonly clusterId: string
  readonly voters: readonly string[]
  /** The other members. They are cut off, and may return only with an empty data directory. */
  readonly cutOff: readonly NodeRecord[]
  readonly commitIndex: number
  /** Index of the last entry of the metadata log on this disk. Entries after the commit index are kept. */
  readonly lastIndex: number
  readonly databases: number
  /** Shards without a replica on this node. They are empty in the new cluster: their documents are lost to it. */
  readonly missing: readonly EndangeredShard[]
  /** Shards whose replica on this node was still being filled. Documents may be missing. */
  readonly incomplete: readonly EndangeredShard[]
  /** Number of shards with a complete replica on this node and others on the members that are cut off. */
  readonly shared: number
}

/** Returns the metadata of the new cluster: this node is the only member and has a replica of every shard. */
export function recoveredState(before: ControlState, node: string, clusterId: string, index: number): ControlState {
  const self = memberOf(before, node)
  if (!self) {
    throw new RecoveryError(
      `${node} is no member of its cluster by the metadata on its disk: it has no databases to recover`,
    )
  }
  const alone = (database: DatabaseRecord): DatabaseRecord => ({
    ...database, shards: database.shards.map(({ range }) => ({ range, replicas: [{ node, filling: false }] })),
  })
  const databases = new Map([...before.databases].map(([name, database]) => [name, alone(database)]))
  return {
    ...before, clusterId, index, replaces: [...before.replaces ?? [], before.clusterId], nodes: { [node]: self },
    lost: [], databases,
  }
}

/** Returns what a recovery from the disk of `node` would keep and lose, by the metadata on this disk. */
export function recoveryReport(
  state: ControlState, node: string,
  log: { readonly voters: readonly string[]; readonly commitIndex: number; readonly lastIndex: number },
): RecoveryReport {
  const missing: EndangeredShard[] = []
  const incomplete: EndangeredShard[] = []
  let shared = 0
  for (const { name, shards } of state.databases.values()) {
    for (const { range, replicas } of [...shards].sort((a, b) => compareRanges(a.range, b.range))) {
      const own = replicas.find(replica => replica.node === node)
      const otherReplicas = replicas.filter(replica => replica.node !== node).map(replica => replica.node)
      if (!own) missing.push({ database: name, range, otherReplicas })
      else if (own.filling) incomplete.push({ database: name, range, otherReplicas })
      else if (otherReplicas.length > 0) shared += 1
    }
  }
  const cutOff = Object.values(state.nodes).filter(({ name }) => name !== node)
  return { clusterId: state.clusterId, ...log, cutOff, databases: state.databases.size, missing, incomplete, shared }
}

/**
 * Returns whether this node and the members that answer are a majority of the voters. The cluster can then continue
 * without a recovery.
 */
export function majorityIsLeft(voters: readonly string[], node: string, answering: readonly string[]): boolean {
  return voters.filter(voter => voter === node || answering.includes(voter)).length >= majority(voters.length)
}

export class ClusterRecovery {
  readonly node: string
  readonly report: RecoveryReport
  readonly #control: ControlStore
  readonly #storage: RaftStorage
  readonly #stored: StoredRaft
  readonly #state: ControlState

  private constructor(
    control: ControlStore, storage: RaftStorage, identity: StoredIdentity, stored: StoredRaft, state: ControlState,
    voters: VotingConfiguration['voters'],
  ) {
    this.node = identity.node
    this.#control = control
    this.#storage = storage
    this.#stored = stored
    this.#state = state
    const { hardState: { commit }, snapshot, log } = stored
    this.report = recoveryReport(state, this.node, {
      voters, commitIndex: Math.max(commit, snapshot.index), lastIndex: log.lastIndex,
    })
  }

  /**
   * Reads the control store of the stopped node `node`. The store stays open until `close`.
   * @throws RecoveryError when the store holds no cluster of that node
   * @throws DamagedControlStoreError
   * @throws StorageError (`locked` when the node is running)
   */
  static async open(storage: Storage, node: string, log: Log): Promise<ClusterRecovery> {
    const control = await ControlStore.open(storage)
    try {
      return await ClusterRecovery.#read(control, node, log)
    } catch (error) {
      await control.store.close()
      throw error
    }
  }

  static async #read(control: ControlStore, node: string, log: Log): Promise<ClusterRecovery> {
    const identity = control.identity()
    if (!identity) {
      throw new RecoveryError('the data directory belongs to no cluster: start the node, and it forms or joins one')
    }
    if (identity.node !== node) {
      throw new RecoveryError(`the data directory belongs to node ${identity.node}, not to ${node}: `
        + 'correct the node\'s name or its data directory')
    }
    const storage = new RaftStorage(control.store)
    const stored = await storage.load()
    const machine = new ControlMachine(identity.clusterId, log, () => {})
    await machine.restore(stored.snapshot, stored.log.lastIndex, async () => {})
    for (const entry of stored.log.slice(stored.snapshot.index + 1, stored.log.lastIndex)) machine.apply(entry)
    if (!memberOf(machine.state, node)) {
      throw new RecoveryError(`${node} is no member of its cluster by the metadata on its disk: `
        + 'recover another node, which has the databases')
    }
    return new ClusterRecovery(control, storage, identity, stored, machine.state, lastVoters(stored))
  }

  close(): Promise<void> { return this.#control.store.close() }

  /** Writes the new cluster. Resolves with the new cluster's id once it is durable. */
  async carryOut(random: Random): Promise<string> {
    const { hardState, log } = this.#stored
    const clusterId = newClusterId(random)
    const index = log.lastIndex + 1
    const term = Math.max(hardState.term, log.lastTerm) + 1
    const state = recoveredState(this.#state, this.node, clusterId, index)
    const bytes = await encodeState(state, async () => {})
    const snapshot: RaftSnapshot = {
      index, term, configuration: { voters: [this.node], learners: [] }, state: bytes,
      checksum: snapshotChecksum(bytes),
    }
    await this.#storage.write(
      { hardState: { term, vote: null, commit: index }, snapshot, entries: [], lastIndex: index, lastTerm: term },
      batch => this.#control.putIdentity(batch, { clusterId, node: this.node }),
    )
    return clusterId
  }
}

function lastVoters({ snapshot, log }: StoredRaft): readonly string[] {
  const entries = log.slice(snapshot.index + 1, log.lastIndex)
  const last = entries.findLast(entry => entry.kind === 'configuration')
  return (last ? decodeConfiguration(last.payload) : snapshot.configuration).voters
}
