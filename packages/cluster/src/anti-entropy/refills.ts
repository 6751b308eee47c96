import type { ShardId } from '@sectional/core'
import type { Clock, Log } from '@sectional/runtime'
import type { HostedShard } from './hosted-shards.ts'

/** Shortest time in milliseconds between two log lines about refills of this node. */
const logPauseMs = 30_000

/** A running pass that copies changes of a peer to a replica of this node that is being filled. */
export interface RefillTask {
  readonly database: string
  readonly shard: ShardId
  /** The node that the pass reads from. */
  readonly source: string
  /**
   * Counts of the source's sequences: those that the pass has processed, and all that the replica had not seen when the
   * pass began.
   */
  readonly changesDone: number
  readonly totalChanges: number
  /** Milliseconds since 1970; also `updatedOn`. */
  readonly startedOn: number
  readonly updatedOn: number
}

export interface RefillsParts {
  readonly clock: Clock
  readonly log: Log
  /** Returns the number of this node's replicas that are being filled. */
  readonly filling: () => number
}

/** Records the progress of the refills of this node's replicas, for the log, the metrics and `_active_tasks`. */
export class Refills {
  readonly #parts: RefillsParts
  readonly #tasks = new Map<string, RefillTask>()
  #loggedAt: number | undefined
  #filled = 0

  constructor(parts: RefillsParts) {
    this.#parts = parts
  }

  /** The running passes. */
  tasks(): readonly RefillTask[] {
    return [...this.#tasks.values()]
  }

  /** Number of changes that the running passes still have to process. */
  get changesLeft(): number {
    return this.tasks().reduce((sum, { totalChanges, changesDone }) => sum + totalChanges - changesDone, 0)
  }

  /** @param changesDone as in `RefillTask` */
  progressed(shard: HostedShard, source: string, changesDone: number, totalChanges: number): void {
    const key = `${shard.key} ${source}`
    const now = this.#parts.clock.now()
    const startedOn = this.#tasks.get(key)?.startedOn ?? now
    this.#tasks.set(key, {
      database: shard.db.name, shard: shard.id, source, changesDone, totalChanges, startedOn, updatedOn: now,
    })
    this.#tell()
  }

  /** Call this when the pass has ended, with or without success. */
  ended(shard: HostedShard, source: string): void {
    this.#tasks.delete(`${shard.key} ${source}`)
  }

  /** Call this after the cluster was informed that a replica has every change of its peers. */
  filled(): void {
    this.#filled++
    this.settle()
  }

  /** Logs once that no replica is left to be filled, according to the shard map that this node has now. */
  settle(): void {
    if (this.#filled === 0 || this.#parts.filling() > 0) return
    this.#parts.log.info({ filled: this.#filled }, 'every replica of this node is filled')
    this.#filled = 0
    this.#loggedAt = undefined
  }

  #tell(): void {
    const now = this.#parts.clock.monotonic()
    if (this.#loggedAt !== undefined && now - this.#loggedAt < logPauseMs) return
    this.#loggedAt = now
    this.#parts.log.info({
      filling: this.#parts.filling(), filled: this.#filled, passes: this.#tasks.size, changesLeft: this.changesLeft,
    }, 'replicas of this node are being filled')
  }
}
