import type { BatchOperations } from './group-commit-store.ts'
import type { SortedMap } from './sorted-map.ts'

interface JournalEntry {
  /** What each key of the batch held before. */
  readonly before: Map<string, Uint8Array | undefined>
  /** Monotonic milliseconds. */
  readonly writtenAt: number
  /** The watermark of the store covers it. */
  covered: boolean
}

/**
 * The newest batches of a simulated store, which can be lost: those of a synced store by damage of its log, those of
 * another one by a failure of the machine.
 */
export class WriteJournal {
  readonly #data: SortedMap
  readonly #batchesMax: number
  #entries: JournalEntry[] = []

  constructor(data: SortedMap, batchesMax: number) {
    this.#data = data
    this.#batchesMax = batchesMax
  }

  /** Batches that can be lost. */
  get length(): number {
    return this.#entries.length
  }

  /** To be called before the batch is applied. @param covered the watermark is written with it */
  add({ keys }: Pick<BatchOperations, 'keys'>, writtenAt: number, covered: boolean): void {
    const before = new Map<string, Uint8Array | undefined>()
    for (const key of keys) if (!before.has(key)) before.set(key, this.#data.get(key))
    this.#entries.push({ before, writtenAt, covered })
    if (this.#entries.length > this.#batchesMax) this.#entries.shift()
  }

  /** The watermark covers what was written until then. */
  cover(writtenUntil: number): void {
    for (const entry of this.#entries) if (entry.writtenAt <= writtenUntil) entry.covered = true
  }

  /** What was written so far is in tables now. */
  reset(): void {
    this.#entries = []
  }

  /**
   * Takes batches back, as far as later ones have not replaced what they wrote. Does nothing unless the next opening of
   * the store must notice: a batch follows, or the watermark covers one of them.
   * @param from the first one, 0: the oldest
   * @param to behind the last one
   */
  lose(from: number, to: number): boolean {
    const lost = this.#entries.slice(from, to)
    const later = this.#entries.slice(to)
    if (lost.length === 0 || (later.length === 0 && !lost.some(({ covered }) => covered))) return false
    this.#takeBack(lost, later)
    return true
  }

  /** Takes the newest batches back, without anything that the next opening could notice. */
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
    // What the others held before is no longer true.
    this.reset()
  }
}
