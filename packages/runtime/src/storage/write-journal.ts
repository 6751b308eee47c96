import type { BatchOperations } from './group-commit-store.ts'
import type { SortedMap } from './sorted-map.ts'

interface JournalEntry {
  /** The values that the keys of the batch had before it. */
  readonly before: Map<string, Uint8Array | undefined>
  /** Monotonic milliseconds. */
  readonly writtenAt: number
  /** True when the store's watermark covers the batch. */
  covered: boolean
}

/**
 * The newest batches of a simulated store, which can be lost: through damage of the log when the store is synced, and
 * through a failure of the machine when it is not.
 */
export class WriteJournal {
  readonly #data: SortedMap
  readonly #batchesMax: number
  /** Oldest first. */
  #entries: JournalEntry[] = []

  constructor(data: SortedMap, batchesMax: number) {
    this.#data = data
    this.#batchesMax = batchesMax
  }

  /** The number of batches that can be lost. */
  get length(): number {
    return this.#entries.length
  }

  /** Call this before the batch is applied. @param covered whether the watermark is written with the batch */
  add({ keys }: Pick<BatchOperations, 'keys'>, writtenAt: number, covered: boolean): void {
    const before = new Map<string, Uint8Array | undefined>()
    for (const key of keys) if (!before.has(key)) before.set(key, this.#data.get(key))
    this.#entries.push({ before, writtenAt, covered })
    if (this.#entries.length > this.#batchesMax) this.#entries.shift()
  }

  /** Marks the batches that were written until then as covered by the watermark. */
  cover(writtenUntil: number): void {
    for (const entry of this.#entries) if (entry.writtenAt <= writtenUntil) entry.covered = true
  }

  /** Forgets all batches, because they are in tables now and can no longer be lost. */
  reset(): void {
    this.#entries = []
  }

  /**
   * Undoes batches, except for keys that later batches have written again. Does nothing and returns false unless the
   * next opening of the store must detect the loss, because a later batch exists or the watermark covers a lost one.
   * @param from index of the first batch; 0 is the oldest
   * @param to index after the last batch
   */
  lose(from: number, to: number): boolean {
    const lost = this.#entries.slice(from, to)
    const later = this.#entries.slice(to)
    if (lost.length === 0 || (later.length === 0 && !lost.some(({ covered }) => covered))) return false
    this.#takeBack(lost, later)
    return true
  }

  /** Undoes the newest batches, in a way that the next opening cannot detect. */
  loseNewest(count: number): void {
    this.#takeBack(this.#entries.slice(this.#entries.length - count), [])
  }

  #takeBack(lost: readonly JournalEntry[], later: readonly JournalEntry[]): void {
    for (const { before } of lost.toReversed()) {
      for (const [key, value] of before) {
        if (later.some(entry => entry.before.has(key))) continue
        if (value === undefined) this.#data.delete(key)
        else this.#data.set(key, value)
      }
    }
    // The recorded earlier values of the other batches are no longer correct.
    this.reset()
  }
}
