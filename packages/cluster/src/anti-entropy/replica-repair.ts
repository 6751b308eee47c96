/**
 * Replaces local replicas in which a damaged record was found (docs/decisions/0008-damage.md). The cluster is informed
 * first, so that the replica counts towards no quorum. The replica is then rebuilt with a new history from its sound
 * records, and filled like any other. If no other replica of the shard counts, the replica stays as it is: only reads
 * of the damaged records fail.
 */
import { SingleRun, shardKey, type CallContext, type ShardId } from '@sectional/core'
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
  /** Milliseconds until a failed step is tried again. */
  readonly retryMs: number
  readonly callTimeoutMs: number
  readonly signal: AbortSignal
  /** Returns the shard as it is in the current cluster state; undefined when no other node has a replica of it. */
  readonly current: (key: string) => HostedShard | undefined
  /**
   * Makes the cluster mark the replica as filling, after all that this node has reported about it. Resolves to false
   * when there is no replica to fill it from.
   */
  readonly reportDamaged: (shard: HostedShard) => Promise<boolean>
  /** Called after the replica was rebuilt with a new history: it must be filled. */
  readonly onRebuilt: (shard: HostedShard) => void
}

/**
 * Largest number of concurrent repairs of blobs. A damaged blob beyond this limit is repaired when it is found again.
 */
const blobRepairsMax = 4

export class ReplicaRepair {
  readonly #parts: ReplicaRepairParts
  readonly #damaged = new Map<string, ShardId>()
  readonly #blobs = new Map<string, Promise<void>>()
  readonly #repairs = new SingleRun(() => this.#run())
  #timer: Timer | undefined

  constructor(parts: ReplicaRepairParts) {
    this.#parts = parts
  }

  /** Returns true while the replica is about to be rebuilt; it must not be taken for complete. */
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

  /** Call this when the cluster's state, or another cause that prevented a repair, may have changed. */
  advance(): void {
    if (this.#damaged.size === 0 || this.#parts.signal.aborted) return
    this.#repairs.request()
  }

  /** The caller must abort `signal` first. Resolves when no repair is running. */
  async stop(): Promise<void> {
    this.#timer?.cancel()
    await this.#repairs.running
    await Promise.all(this.#blobs.values())
  }

  async #run(): Promise<void> {
    this.#timer?.cancel()
    for (const [key, id] of [...this.#damaged]) {
      if (this.#parts.signal.aborted) return
      try {
        await this.#repair(key, id)
      } catch (error) {
        const fields = { shard: key, error: String(error) }
        this.#parts.log.debug(fields, 'a damaged replica could not be repaired yet; trying again')
      }
    }
    if (this.#damaged.size === 0 || this.#parts.signal.aborted) return
    this.#timer = this.#parts.clock.setTimer(this.#parts.retryMs, () => this.advance())
  }

  async #repair(key: string, id: ShardId): Promise<void> {
    const { local, current, reportDamaged, onRebuilt } = this.#parts
    if (local.replica(id) === undefined) return void this.#damaged.delete(key)
    const shard = current(key)
    // Without another replica there is nothing to fill the replica from.
    if (shard === undefined) return
    // A replica that is being filled is reported, too: a report that it is filled may be on its way to the log.
    if (!await reportDamaged(shard)) return
    // This node's coordinators follow its own metadata, so that must mark the replica as filling before the rebuild.
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
          await copyBlob(replicas.replica(peer, id).blobs, own!.blobs, hash, call)
          return log.warn({ blob: hash, peer }, 'damaged attachment content was replaced by that of another replica')
        } catch (error) {
          const { message } = asReplicaError(error)
          log.debug({ blob: hash, peer, error: message }, 'a replica could not send attachment content')
        }
      }
    }
    log.warn({ blob: hash }, 'damaged attachment content could not be replaced yet')
  }
}
