import { SingleRun } from '@sectional/core'
import type { Clock, Log, Store, Timer } from '@sectional/runtime'
import { ShardKeys } from '../records/key-layout.ts'
import type { ShardDirectory } from './shard-directory.ts'

/** For smaller cleared ranges, the space is left to LevelDB's own compactions. */
const compactedBytesMin = 4 * 1024 * 1024
/** Milliseconds from a failure to the next attempt. */
const retryMs = 60_000

interface ReclaimerParts {
  readonly store: Store
  readonly directory: ShardDirectory
  readonly clock: Clock
  readonly log: Log
  /** Called after keys were cleared: attachments that only the dropped shards named may now be removed. */
  readonly onCleared: () => void
  /** Aborts when the node stops. */
  readonly signal: AbortSignal
}

/** Clears the keys of dropped shards in the background. After a failure it tries again after `retryMs`. */
export class SpaceReclaimer {
  readonly #parts: ReclaimerParts
  readonly #work = new SingleRun(() => this.#reclaim())
  #retry: Timer | undefined

  constructor(parts: ReclaimerParts) {
    this.#parts = parts
    parts.signal.addEventListener('abort', () => this.#retry?.cancel(), { once: true })
  }

  /** Starts clearing if there are dropped shards. Call this after a shard was or may have been dropped. */
  start(): void {
    this.#retry?.cancel()
    if (this.#parts.signal.aborted || this.#parts.directory.dropped().length === 0) return
    this.#work.request()
  }

  /** Waits until the space of every shard dropped so far is reclaimed. */
  async done(): Promise<void> {
    await this.#work.running
  }

  async #reclaim(): Promise<void> {
    const { store, directory, clock, log, onCleared, signal } = this.#parts
    try {
      for (let dropped = directory.dropped(); dropped.length > 0; dropped = directory.dropped()) {
        for (const run of runs(dropped)) {
          if (signal.aborted) return
          const range = ShardKeys.shards(run[0], run.at(-1) ?? run[0])
          const bytes = await store.approximateSize(range)
          await store.clear(range, signal)
          await directory.reclaimed(run)
          onCleared()
          if (bytes >= compactedBytesMin) await store.compact(range, signal)
        }
      }
    } catch (error) {
      // The next start clears the rest.
      if (signal.aborted) return
      log.warn(
        { error: String(error) }, 'the space of dropped shards could not be reclaimed; this is tried again later',
      )
      // Two runs may fail, one right after the other.
      this.#retry?.cancel()
      this.#retry = clock.setTimer(retryMs, () => this.start())
    }
  }
}

/**
 * Groups neighbouring prefixes. Clearing a range flushes the store's write buffer, and a deleted database drops all its
 * shards, so one range is cheaper than many.
 */
function runs(prefixes: readonly number[]): [number, ...number[]][] {
  const found: [number, ...number[]][] = []
  for (const prefix of prefixes.toSorted((a, b) => a - b)) {
    const last = found.at(-1)
    if (last !== undefined && last.at(-1) === prefix - 1) last.push(prefix)
    else found.push([prefix])
  }
  return found
}
