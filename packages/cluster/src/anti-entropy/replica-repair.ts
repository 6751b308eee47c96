/**
 * Replaces local replicas that met a damaged record (docs/decisions/0008-damage.md): the cluster is told first, so that
 * the replica counts towards no quorum; then it begins another life with what is sound in it, and is filled like any
 * other. The only replica of a shard that counts stays as it is: reads of what is damaged fail, and nothing else.
 */
import { shardKey, type CallContext, type ShardId } from '@sectional/core'
import type { Clock, Log, Timer } from '@sectional/runtime'
import { copyBlob } from '../replicas/blob-copy.ts'
import type { ReplicaDirectory } from '../replicas/replica-directory.ts'
import { asReplicaError } from '../replicas/replica-failures.ts'
import type { HostedShard } from './hosted-shards.ts'
import type { LocalReplicas } from '../replicas/local-replicas.ts'

export interface ReplicaRepairParts {
  readonly clock: Clock
  readonly log: Log
  readonly local: LocalReplicas
  readonly replicas: ReplicaDirectory
  /** Milliseconds until what could not be done is tried again. */
  readonly retryMs: number
  readonly callTimeoutMs: number
  readonly signal: AbortSignal
  /** The shard as the cluster state has it now; undefined: nobody else has a replica. */
  readonly current: (key: string) => HostedShard | undefined
  /** Has the cluster take the replica for one that is to be filled. Resolves with false when there is nobody to fill it from. */
  readonly reportDamaged: (shard: HostedShard) => Promise<boolean>
  /** The replica has begun another life: it is to be filled. */
  readonly onRebuilt: (shard: HostedShard) => void
}

/** Damaged blobs that are repaired at a time; what finds no room is found again. */
const blobRepairsMax = 4

export class ReplicaRepair {
  readonly #parts: ReplicaRepairParts
  readonly #damaged = new Map<string, ShardId>()
  readonly #blobs = new Map<string, Promise<void>>()
  #running: Promise<void> | undefined
  #timer: Timer | undefined

  constructor(parts: ReplicaRepairParts) {
    this.#parts = parts
  }

  /** The replica is about to be rebuilt: what it holds now is not to be taken for complete. */
  isDamaged(key: string): boolean {
    return this.#damaged.has(key)
  }

  damagedReplica(id: ShardId): void {
    const key = shardKey(id)
    if (this.#parts.signal.aborted || this.#damaged.has(key)) return
    this.#damaged.set(key, id)
    this.advance()
  }

  damagedBlob(hash: string, shards: readonly ShardId[]): void {
    if (this.#parts.signal.aborted || this.#blobs.has(hash) || this.#blobs.size >= blobRepairsMax) return
    this.#blobs.set(hash, this.#repairBlob(hash, shards).finally(() => { this.#blobs.delete(hash) }))
  }

  /** The cluster's state, or something else that kept a repair back, may be different now. */
  advance(): void {
    if (this.#damaged.size === 0 || this.#parts.signal.aborted) return
    this.#running ??= this.#run().finally(() => { this.#running = undefined })
  }

  /** Whoever stops it aborts `signal` first. */
  async stop(): Promise<void> {
    this.#timer?.cancel()
    await this.#running
    await Promise.all(this.#blobs.values())
  }

  async #run(): Promise<void> {
    this.#timer?.cancel()
    for (const [key, id] of [...this.#damaged]) {
      if (this.#parts.signal.aborted) return
      try {
        await this.#repair(key, id)
      } catch (error) {
        this.#parts.log.debug({ shard: key, error: String(error) }, 'a damaged replica could not be repaired yet; this is tried again')
      }
    }
    if (this.#damaged.size > 0 && !this.#parts.signal.aborted) this.#timer = this.#parts.clock.setTimer(this.#parts.retryMs, () => this.advance())
  }

  async #repair(key: string, id: ShardId): Promise<void> {
    const { local, current, reportDamaged, onRebuilt } = this.#parts
    if (local.replica(id) === undefined) return void this.#damaged.delete(key)
    const shard = current(key)
    // Without another replica nothing would be gained.
    if (shard === undefined) return
    if (!shard.filling && !await reportDamaged(shard)) return
    // Only what this node's own metadata says binds its coordinators.
    const now = current(key)
    if (now?.filling !== true) return
    await local.rebuild(id)
    this.#damaged.delete(key)
    onRebuilt(now)
  }

  async #repairBlob(hash: string, shards: readonly ShardId[]): Promise<void> {
    const { local, replicas, current, callTimeoutMs, signal, log } = this.#parts
    const call: CallContext = { timeoutMs: callTimeoutMs, signal, requestId: 'blob-repair' }
    for (const id of shards) {
      const own = local.replica(id)
      for (const peer of own === undefined ? [] : current(shardKey(id))?.peers ?? []) {
        if (!replicas.isConnected(peer) || signal.aborted) continue
        try {
          await copyBlob(replicas.replica(peer, id), own!, hash, call)
          return log.warn({ blob: hash, peer }, 'damaged attachment content was replaced by that of another replica')
        } catch (error) {
          log.debug({ blob: hash, peer, error: asReplicaError(error).message }, 'a replica could not give attachment content')
        }
      }
    }
    log.warn({ blob: hash }, 'damaged attachment content could not be replaced yet')
  }
}
