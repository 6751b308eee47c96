import type { BlobStore, Clock, Log, Metrics, Store, Timer } from '@sectional/runtime'
import { blobKeys, ShardKeys } from '../records/key-layout.ts'
import { leaseMs } from './blob-leases.ts'
import type { BlobLeases } from './blob-leases.ts'

/** Milliseconds between two sweeps. A sweep costs about 50 us of work per blob, interleaved with other work. */
const sweepPauseMs = 3_600_000
/** Milliseconds from `soon` to the sweep. `soon` is called when dropped data may have named content. */
const soonMs = 60_000
/** The number of references that are read in one crossing to the thread pool. */
const pageEntries = 16
/** The number of references to missing bodies that are deleted in one batch. */
const deadMax = 1000

export interface BlobSweepParts {
  readonly blobs: BlobStore
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly leases: BlobLeases
  /** Returns false while references that were written may be missing. */
  readonly complete: () => boolean
}

/**
 * Removes blobs that no body names. A reference counts only while the body exists with which it was written. Therefore
 * code that drops bodies (stemming, compaction, dropping a shard) does not need to know about blobs.
 */
export class BlobSweep {
  readonly #parts: BlobSweepParts
  readonly #removed
  #timer: Timer | undefined
  /** The monotonic time at which the next sweep begins. Milliseconds. */
  #dueAt = Number.POSITIVE_INFINITY
  /** The earliest monotonic time of the first sweep. Milliseconds. */
  #firstAt = Number.POSITIVE_INFINITY
  #running: Promise<number> | undefined
  #stopped = false

  constructor(parts: BlobSweepParts) {
    this.#parts = parts
    this.#removed = parts.metrics.counter('sectional_blob_removed_total', 'Blobs removed because nothing names them.')
  }

  /**
   * The first sweep waits for the length of a lease, so that clients whose write was interrupted by the restart can try
   * again.
   */
  start(): void {
    this.#firstAt = this.#parts.clock.monotonic() + leaseMs
    this.#arm(this.#firstAt)
  }

  /** Schedules a sweep within a minute, but not before the first regular sweep. */
  soon(): void {
    const at = Math.max(this.#firstAt, this.#parts.clock.monotonic() + soonMs)
    if (at < this.#dueAt) this.#arm(at)
  }

  /** Sweeps now; resolves with the number of blobs that were removed. */
  run(): Promise<number> {
    this.#running ??= this.#sweep().finally(() => { this.#running = undefined })
    return this.#running
  }

  async stop(): Promise<void> {
    this.#stopped = true
    this.#timer?.cancel()
    await this.#running?.catch(() => {})
  }

  #arm(at: number): void {
    const { clock, log } = this.#parts
    this.#timer?.cancel()
    if (this.#stopped) return
    this.#dueAt = at
    this.#timer = clock.setTimer(at - clock.monotonic(), () => {
      this.#arm(clock.monotonic() + sweepPauseMs)
      this.run().catch((error: unknown) => {
        log.warn({ error: String(error) }, 'removing unused attachment content failed; it is tried again later')
      })
    })
  }

  async #sweep(): Promise<number> {
    const { blobs, store, leases, complete } = this.#parts
    if (!complete()) return 0
    let count = 0
    let settled = -1
    for await (const hash of blobs.list()) {
      if (this.#stopped) break
      if (store.failures !== settled) {
        // A batch that failed may turn out to be on the disk when the store has recovered, so wait for the recovery.
        await store.write(() => {})
        settled = store.failures
      }
      const removed = await leases.remove(hash, async () => {
        if (await this.#isNamed(hash) || store.failures !== settled) return false
        await blobs.delete(hash)
        return true
      })
      if (removed === true) count++
    }
    this.#removed.add(count)
    return count
  }

  async #isNamed(hash: string): Promise<boolean> {
    const { store } = this.#parts
    const dead: string[] = []
    const forget = (keys: readonly string[]): Promise<void> =>
      store.write(batch => { for (const key of keys) batch.delete(key) })
    let named = false
    const iterator = store.iterate(blobKeys.references(hash), { values: false })
    try {
      for (let page =
        await iterator.next(pageEntries); page.length > 0 && !named; page = await iterator.next(pageEntries)) {
        for (const [key] of page) {
          const { prefix, sequence } = blobKeys.readReference(key)
          named = store.getSync(new ShardKeys(prefix).body(sequence)) !== undefined
          if (named) break
          dead.push(key)
        }
        if (dead.length >= deadMax) await forget(dead.splice(0))
      }
    } finally {
      await iterator.close()
    }
    if (dead.length > 0) await forget(dead)
    return named
  }
}
