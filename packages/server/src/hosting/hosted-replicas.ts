/**
 * Keeps the replicas on this node's disk as the cluster's metadata wants them: creates missing ones and drops others.
 */
import {
  DatabaseMap, databaseOn, shardsOn, type ClusterState, type CommitListener, type DamageListener, type DatabaseRecord,
  type LocalReplicas,
} from '@sectional/cluster'
import { ReplicaError, SingleRun, shardKey } from '@sectional/core'
import type { ImmediateIndexReads, IndexReplica, ShardId, ShardReplica } from '@sectional/core'
import { RepeatedLines } from '@sectional/runtime'
import type { Clock, Log, Timer } from '@sectional/runtime'
import type { CompactionTask, ShardHost, ShardIndexTask } from '@sectional/shard'
import { PendingIndexes } from './pending-indexes.ts'
import { PendingReplica } from './pending-replica.ts'

export interface HostedReplicasParts {
  readonly node: string
  readonly host: ShardHost
  readonly clock: Clock
  readonly log: Log
  /** Wraps each replica; absent in production. */
  readonly seam?: (shard: ShardId, replica: ShardReplica) => ShardReplica
}

/** The part of the control plane (`ControlPlaneNode`) that `HostedReplicas` uses. */
export interface InventorySource {
  appliedState(): ClusterState | null
  /** Whether this node belonged to a cluster according to its disk when its process started. */
  startedAsMember(): boolean
  /** Whether a replica that the state does not list may be dropped, because the state is known to be current. */
  confirmed(): boolean
  onChange(listener: () => void): () => void
}

/**
 * The maximum number of shards that are created or dropped concurrently. Each is one small durable write, and
 * concurrent ones share an fsync.
 */
const parallelChanges = 64
/**
 * Milliseconds until the next attempt after a failure, or while replicas that are not in the metadata cannot be dropped
 * yet.
 */
const retryMs = 2000

export class HostedReplicas implements LocalReplicas {
  readonly #parts: HostedReplicasParts
  readonly #repeated: RepeatedLines
  /** Keys of the shards whose local replica is catching up; usually empty. */
  readonly #catchingUp = new Set<string>()
  #source: InventorySource | undefined
  /**
   * True when all replicas that the metadata assigned to this node at its start are on its disk, or were found missing.
   */
  #lookedForMissing = false
  /**
   * The shards to be compared with the metadata, by key: those that changed in the metadata, those whose replica a call
   * has created, and those whose change failed.
   */
  readonly #unsettled = new Map<string, ShardId>()
  /** The databases of the last metadata state whose changes were added to `#unsettled`. */
  #databases: ClusterState['databases'] = DatabaseMap.from([])
  #unsubscribe: () => void = () => {}
  #retry: Timer | undefined
  readonly #reconciliation = new SingleRun(() => this.#reconcile())
  #stopped = false

  constructor(parts: HostedReplicasParts) {
    this.#parts = parts
    this.#repeated = new RepeatedLines(parts.log, parts.clock)
  }

  /** Follows the metadata from now on. */
  start(source: InventorySource): void {
    this.#source = source
    for (const shard of this.#parts.host.list()) this.#unsettled.set(shardKey(shard), shard)
    this.#unsubscribe = source.onChange(() => this.#reconciliation.request())
    this.#reconciliation.request()
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#unsubscribe()
    this.#retry?.cancel()
    await this.#reconciliation.running
  }

  shards(): readonly ShardId[] {
    return this.#parts.host.list()
  }

  replica(shard: ShardId): ShardReplica | undefined {
    const engine = this.#parts.host.replica(shard)
    return engine && this.#shown(shard, engine)
  }

  /**
   * Returns the local replica, or undefined when there is none. A replica that the metadata wants but that does not
   * exist yet is returned at once; its calls wait until it is created.
   */
  planned(shard: ShardId): ShardReplica | undefined {
    const engine = this.replica(shard)
    if (engine !== undefined || this.#stopped || this.#plannedFor(shard) === undefined) return engine
    return this.#shown(shard, new PendingReplica(() => this.#createForCall(shard)))
  }

  #shown(shard: ShardId, replica: ShardReplica): ShardReplica {
    return this.#parts.seam?.(shard, replica) ?? replica
  }

  /** Returns the local replica; when there is none, a replica whose calls reject with `not_hosted`. */
  replicaOrAbsent(shard: ShardId): ShardReplica {
    return this.planned(shard)
      ?? new PendingReplica(() =>
        Promise.reject(new ReplicaError('not_hosted', `this node holds no replica of ${shardKey(shard)}`)))
  }

  /**
   * Returns the indexes of the local replica. When there is none, their calls reject with `not_hosted`. If the metadata
   * wants the replica and it does not exist yet, calls wait until it is created.
   */
  indexesOrAbsent(shard: ShardId): IndexReplica {
    const { host } = this.#parts
    return new PendingIndexes(async creates => {
      if (host.replica(shard) === undefined && !this.#stopped && this.#plannedFor(shard) !== undefined) {
        await this.#createForCall(shard)
      }
      return await host.indexes(shard, creates)
    })
  }

  /** Returns reads from memory of the indexes of the local replica, if they are open. */
  immediateIndexes(shard: ShardId): ImmediateIndexReads | undefined {
    return this.#parts.host.immediateIndexes(shard)
  }

  /** Returns the builds of indexes that run on this node now. */
  indexBuilds(): readonly ShardIndexTask[] {
    return this.#parts.host.indexBuilds()
  }

  /** Returns the compactions that run on this node now. */
  compactions(): readonly CompactionTask[] {
    return this.#parts.host.compactions()
  }

  setCatchingUp(shard: ShardId, catchingUp: boolean): void {
    this.#parts.host.replica(shard)?.setCatchingUp(catchingUp)
    if (catchingUp) this.#catchingUp.add(shardKey(shard))
    else this.#catchingUp.delete(shardKey(shard))
  }

  isCatchingUp(shard: ShardId): boolean {
    return this.#catchingUp.size > 0 && this.#catchingUp.has(shardKey(shard))
  }

  onDamage(listener: DamageListener): () => void {
    return this.#parts.host.onDamage(listener)
  }

  isUncompared(shard: ShardId): boolean {
    return this.#parts.host.isUncompared(shard)
  }

  compared(shard: ShardId): void {
    this.#parts.host.compared(shard)
  }

  onMissed(listener: (shard: ShardId) => void): () => void {
    return this.#parts.host.onMissed(listener)
  }

  async rebuild(shard: ShardId): Promise<void> {
    await this.#parts.host.rebuild(shard)
  }

  /** Rebuilds every replica on this disk, so that each gets a new history. Ends early when the node stops. */
  async renew(): Promise<void> {
    const shards = this.shards()
    this.#parts.log.info({ replicas: shards.length }, 'giving the replicas on this disk new histories')
    for (const shard of shards) {
      if (this.#stopped) throw new ReplicaError('closed', 'the node stops')
      await this.#parts.host.rebuild(shard)
    }
    this.#parts.log.info({ replicas: shards.length }, 'the replicas on this disk have new histories')
  }

  onCommit(listener: CommitListener): () => void {
    return this.#parts.host.onCommit(listener)
  }

  /** Returns the database for which the metadata assigns this shard to this node. */
  #plannedFor(shard: ShardId): DatabaseRecord | undefined {
    const state = this.#source?.appliedState()
    return state ? databaseOn(this.#parts.node, state, shard) : undefined
  }

  #create(shard: ShardId): Promise<ShardReplica> {
    return this.#parts.host.create(shard, this.#plannedFor(shard)?.partitioned ?? false)
  }

  /**
   * Creates a replica for a call, and then compares its shard with the metadata. A pass may have missed the database
   * that has the shard, or not have found the replica yet, when the database was deleted.
   */
  async #createForCall(shard: ShardId): Promise<ShardReplica> {
    let isCreated = false
    try {
      const replica = await this.#create(shard)
      isCreated = true
      return replica
    } finally {
      // Also after a failure, because the replica may be on the disk.
      this.#unsettled.set(shardKey(shard), shard)
      if (isCreated) this.#reconciliation.request()
      else this.#reconcileLater()
    }
  }

  #drop(shard: ShardId): Promise<void> {
    this.#catchingUp.delete(shardKey(shard))
    return this.#parts.host.drop(shard)
  }

  async #reconcile(): Promise<void> {
    if (this.#stopped) return
    const settled = await this.#pass()
    if (!settled) this.#reconcileLater()
  }

  #reconcileLater(): void {
    if (this.#stopped) return
    this.#retry ??= this.#parts.clock.setTimer(retryMs, () => {
      this.#retry = undefined
      this.#reconciliation.request()
    })
  }

  /** Applies what has changed in the metadata. Resolves with whether nothing remains to be done. */
  async #pass(): Promise<boolean> {
    const { host, node } = this.#parts
    const source = this.#source
    const state = source?.appliedState()
    if (source === undefined || !state) return true
    for (const { before, after } of DatabaseMap.changed(this.#databases, state.databases)) {
      for (const database of [before, after]) {
        for (const shard of database === undefined ? [] : shardsOn(node, database)) {
          this.#unsettled.set(shardKey(shard), shard)
        }
      }
    }
    this.#databases = state.databases
    if (host.isNew && source.startedAsMember()) await this.#setIncomplete(true)
    const changes: Change[] = []
    for (const [key, shard] of this.#unsettled) {
      const planned = databaseOn(node, state, shard) !== undefined
      if (planned === host.hosts(shard)) this.#unsettled.delete(key)
      else if (planned) changes.push({ shard, make: () => this.#create(shard) })
      else if (source.confirmed()) changes.push({ shard, make: () => this.#drop(shard) })
    }
    for (let from = 0; from < changes.length && !this.#stopped; from += parallelChanges) {
      await this.#makeAll(changes.slice(from, from + parallelChanges))
    }
    const settled = this.#unsettled.size === 0
    if (settled && source.confirmed()) {
      this.#lookedForMissing = true
      await this.#setIncomplete(false)
    }
    return settled
  }

  /**
   * Records whether replicas may be missing on this disk. While they may, a newly created replica is treated as a lost
   * one, and afterwards as a new one.
   */
  async #setIncomplete(incomplete: boolean): Promise<void> {
    const { host, log } = this.#parts
    if (host.incomplete === incomplete || (incomplete && this.#lookedForMissing)) return
    try {
      await host.setIncomplete(incomplete)
    } catch (error) {
      log.warn({ err: error, incomplete }, 'the mark that replicas may be missing on this disk could not be written')
    }
  }

  async #makeAll(changes: readonly Change[]): Promise<void> {
    await Promise.all(changes.map(async ({ shard, make }) => {
      const key = shardKey(shard)
      // A call may add the shard again during the change, because it has created the replica.
      this.#unsettled.delete(key)
      try {
        await make()
      } catch (error) {
        this.#unsettled.set(key, shard)
        this.#repeated.warn(
          error instanceof ReplicaError ? error.code : 'unknown', { err: error },
          'a replica could not be created or dropped; this is tried again',
        )
      }
    }))
  }
}

interface Change { readonly shard: ShardId; readonly make: () => Promise<unknown> }
