import type { LogEntry } from '@sectional/core'

/**
 * The log entries after `baseIndex`; earlier entries are only in a snapshot. The entries are held in memory, and
 * compaction bounds them.
 */
export class RaftLog {
  #base: number
  #baseTermValue: number
  #entries: LogEntry[]

  constructor(baseIndex = 0, baseTerm = 0, entries: readonly LogEntry[] = []) {
    this.#base = baseIndex
    this.#baseTermValue = baseTerm
    this.#entries = [...entries]
    this.#checkContiguous()
  }

  /** Index of the last entry that was compacted away. */
  get baseIndex(): number { return this.#base }
  get baseTerm(): number { return this.#baseTermValue }
  get lastIndex(): number { return this.#base + this.#entries.length }
  get lastTerm(): number { return this.#entries.at(-1)?.term ?? this.#baseTermValue }

  /** Returns undefined when the entry was compacted away or does not exist yet. */
  term(index: number): number | undefined {
    if (index === this.#base) return this.#baseTermValue
    return this.#entries[index - this.#base - 1]?.term
  }

  /** Entries `from..to`, both inclusive. */
  slice(from: number, to: number): readonly LogEntry[] {
    return this.#entries.slice(Math.max(0, from - this.#base - 1), Math.max(0, to - this.#base))
  }

  /**
   * Returns entries from `from` on: at most `maxEntries`, and at most `maxBytes` of payload. The first entry is
   * returned whatever its size.
   */
  page(from: number, maxEntries: number, maxBytes: number): readonly LogEntry[] {
    const start = from - this.#base - 1
    let end = start
    for (let bytes = 0; end < this.#entries.length && end - start < maxEntries; end += 1) {
      bytes += this.#entries[end]?.payload.length ?? 0
      if (end > start && bytes > maxBytes) break
    }
    return this.#entries.slice(start, end)
  }

  append(entry: LogEntry): void {
    if (entry.index !== this.lastIndex + 1) {
      throw new Error(`log: entry ${entry.index} does not follow ${this.lastIndex}`)
    }
    this.#entries.push(entry)
  }

  /** Removes entry `index` and all later ones. */
  truncate(index: number): void {
    if (index <= this.#base) throw new Error(`log: cannot drop entry ${index}, which a snapshot holds`)
    this.#entries.length = Math.min(this.#entries.length, index - this.#base - 1)
  }

  /** Removes entries up to `index`, which a snapshot must cover. */
  compact(index: number): void {
    const term = this.term(index)
    if (term === undefined) {
      throw new Error(`log: cannot compact at ${index}, the log holds ${this.#base + 1}..${this.lastIndex}`)
    }
    this.#entries = this.#entries.slice(index - this.#base)
    this.#base = index
    this.#baseTermValue = term
  }

  /** Empties the log and lets it begin after a snapshot of `index`. */
  reset(index: number, term: number): void {
    this.#base = index
    this.#baseTermValue = term
    this.#entries = []
  }

  /**
   * Returns whether a candidate whose log ends like this has every committed entry that this node has (thesis, 3.6.1).
   */
  isUpToDate(lastIndex: number, lastTerm: number): boolean {
    return lastTerm > this.lastTerm || (lastTerm === this.lastTerm && lastIndex >= this.lastIndex)
  }

  /**
   * Returns the index at which a leader should retry after `previousIndex` did not match: the start of the conflicting
   * term, or one after the end of this log.
   */
  conflictIndex(previousIndex: number): number {
    if (previousIndex > this.lastIndex) return this.lastIndex + 1
    const term = this.term(previousIndex)
    let index = previousIndex
    while (index - 1 > this.#base && this.term(index - 1) === term) index -= 1
    return index
  }

  #checkContiguous(): void {
    this.#entries.forEach((entry, at) => {
      if (entry.index !== this.#base + 1 + at) {
        throw new Error(`log: entry ${entry.index} where ${this.#base + 1 + at} belongs`)
      }
    })
  }
}
