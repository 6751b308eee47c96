import type { ShardId } from '@sectional/core'
import type { Clock, Log } from '@sectional/runtime'
import type { HostedShard } from './hosted-shards.ts'

/** Least time between two lines about the refill of this node. Milliseconds. */
const logPauseMs = 30_000

/** A pass that brings a replica of this node, which is being filled, the changes of a peer. */
export interface RefillTask {
  readonly database: string
  readonly shard: ShardId
  /** The node that is read from. */
  readonly source: string
  /** Sequences of the source: those that were passed, and all that lay before the replica when the pass began. */
  readonly changesDone: number
  readonly totalChanges: number
  /** Milliseconds since 1970. */
  readonly startedOn: number
  readonly updatedOn: number
}

export interface RefillsParts {
  readonly clock: Clock
  readonly log: Log
  /** Replicas of this node that are being filled. */
  readonly filling: () => number
}

/** How far the refill of this node's replicas is: for the log, metrics and `_active_tasks`. */
export class Refills {
  readonly #parts: RefillsParts
  readonly #tasks = new Map<string, RefillTask>()
  #loggedAt: number | undefined
  #filled = 0

  constructor(parts: RefillsParts) {
    this.#parts = parts
  }

  /** Passes that run now. */
  tasks(): readonly RefillTask[] {
    return [...this.#tasks.values()]
  }

  /** Changes that the passes which run now have yet to look at. */
  get changesLeft(): number {
    return this.tasks().reduce((sum, { totalChanges, changesDone }) => sum + totalChanges - changesDone, 0)
  }

  /** @param changesDone as in `RefillTask` */
  progressed(shard: HostedShard, source: string, changesDone: number, totalChanges: number): void {
    const key = `${shard.key} ${source}`
    const now = this.#parts.clock.now()
    const startedOn = this.#tasks.get(key)?.startedOn ?? now
    this.#tasks.set(key, { database: shard.db.name, shard: shard.id, source, changesDone, totalChanges, startedOn, updatedOn: now })
    this.#tell()
  }

  /** The pass has ended, well or not. */
  ended(shard: HostedShard, source: string): void {
    this.#tasks.delete(`${shard.key} ${source}`)
  }

  /** The cluster was told that a replica has what its peers have. */
  filled(): void {
    this.#filled++
    this.settle()
  }

  /** Says so once nothing is left to be filled, by the shard map that this node knows now. */
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
    this.#parts.log.info({ filling: this.#parts.filling(), filled: this.#filled, passes: this.#tasks.size, changesLeft: this.changesLeft }, 'replicas of this node are being filled')
  }
}
