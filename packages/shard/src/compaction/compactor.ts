import { SingleRun } from '@sectional/core'
import type { ShardId } from '@sectional/core'
import type { Clock, Log, Timer } from '@sectional/runtime'
import { toReplicaError } from '../calls/call-guard.ts'
import { shardName } from '../directory/shard-directory.ts'
import { defaultCompactionOptions } from './compaction-options.ts'
import type { CompactionOptions } from './compaction-options.ts'
import { ShardCompaction } from './shard-compaction.ts'
import type { CompactedShard, CompactionProgress } from './shard-compaction.ts'

export interface CompactionTask extends CompactionProgress { readonly shard: ShardId }

interface Entry { readonly shard: ShardId; readonly compacted: CompactedShard }

/**
 * Runs the compactions of one node one after the other: on request, and automatically for shards with many replaced
 * bodies.
 */
export class Compactor {
  readonly #clock: Clock
  readonly #log: Log
  readonly #options: CompactionOptions
  readonly #abort = new AbortController()
  /** Requested compactions by shard name, in the order in which they will run. */
  readonly #waiting = new Map<string, Entry>()
  /** Shards that have reached both minimums, by name. They are requested when the timer fires. */
  readonly #due = new Map<string, Entry>()
  #running: { readonly name: string; readonly shard: ShardId; readonly compaction: ShardCompaction } | undefined
  readonly #work = new SingleRun(() => this.#run())
  #timer: Timer | undefined

  constructor(clock: Clock, log: Log, options: Partial<CompactionOptions> = {}) {
    this.#clock = clock
    this.#log = log
    this.#options = { ...defaultCompactionOptions, ...options }
  }

  /**
   * Compacts the shard after those that were requested earlier. A shard that is waiting already is compacted once. One
   * whose compaction runs is compacted again, because the compaction has passed documents that were changed since.
   */
  request(shard: ShardId, compacted: CompactedShard): void {
    const name = shardName(shard)
    this.#due.delete(name)
    if (this.#abort.signal.aborted) return
    this.#waiting.set(name, { shard, compacted })
    this.#work.request()
  }

  /** Call this after a write to the shard. Schedules a compaction when both minimums of replaced bodies are reached. */
  written(shard: ShardId, compacted: CompactedShard): void {
    const { replacedBytesMin, replacedPartMin, checkIntervalMs } = this.#options
    const { replacedBytes, externalBytes } = compacted.writer.committed()
    if (replacedBytes < replacedBytesMin || replacedBytes < replacedPartMin * (replacedBytes + externalBytes)
      || this.#abort.signal.aborted) {
      return
    }
    this.#due.set(shardName(shard), { shard, compacted })
    this.#timer ??= this.#clock.setTimer(checkIntervalMs, () => {
      this.#timer = undefined
      for (const entry of [...this.#due.values()]) this.request(entry.shard, entry.compacted)
    })
  }

  isCompacting(shard: ShardId): boolean {
    const name = shardName(shard)
    return this.#running?.name === name || this.#waiting.has(name)
  }

  /** Returns the compactions that are running now. */
  tasks(): readonly CompactionTask[] {
    return this.#running === undefined ? [] : [{ shard: this.#running.shard, ...this.#running.compaction.progress }]
  }

  forget(shard: ShardId): void {
    const name = shardName(shard)
    this.#waiting.delete(name)
    this.#due.delete(name)
  }

  /** Resolves when no compaction runs any more. */
  async stop(): Promise<void> {
    this.#abort.abort()
    this.#timer?.cancel()
    this.#waiting.clear()
    await this.#work.running
  }

  async #run(): Promise<void> {
    for (;;) {
      const next = this.#waiting.entries().next()
      if (next.done || this.#abort.signal.aborted) return
      const [name, { shard, compacted }] = next.value
      this.#waiting.delete(name)
      try {
        const compaction = new ShardCompaction(compacted, this.#clock, this.#options, this.#abort.signal)
        this.#running = { name, shard, compaction }
        await compaction.run()
      } catch (error) {
        if (this.#abort.signal.aborted) return
        this.#log.warn(
          { shard: name.replace('\0', ' '), error: String(toReplicaError(error)) },
          'a compaction ended early; the next compaction does the rest',
        )
      } finally {
        this.#running = undefined
      }
    }
  }
}
