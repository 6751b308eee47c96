import type { LogEntry } from '@sectional/core'

/** The entries after `baseIndex` (everything up to it is only in a snapshot). Held in memory: compaction bounds it. */
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

  /** Index of the last entry that is no longer kept. */
  get baseIndex(): number { return this.#base }
  get baseTerm(): number { return this.#baseTermValue }
  get lastIndex(): number { return this.#base + this.#entries.length }
  get lastTerm(): number { return this.#entries.at(-1)?.term ?? this.#baseTermValue }

  /** Undefined: compacted away, or not there yet. */
  term(index: number): number | undefined {
    if (index === this.#base) return this.#baseTermValue
    return this.#entries[index - this.#base - 1]?.term
  }

  /** Entries `from..to`, both inclusive. */
  slice(from: number, to: number): readonly LogEntry[] {
    return this.#entries.slice(Math.max(0, from - this.#base - 1), Math.max(0, to - this.#base))
  }

  /**
   * Entries from `from` on: at most `maxEntries`, and at most `maxBytes` of payload, but always one when there is one.
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

  /** Drops entry `index` and all later ones. */
  truncate(index: number): void {
    if (index <= this.#base) throw new Error(`log: cannot drop entry ${index}, which a snapshot holds`)
    this.#entries.length = Math.min(this.#entries.length, index - this.#base - 1)
  }

  /** Forgets entries up to `index`. */
  compact(index: number): void {
    const term = this.term(index)
    if (term === undefined) {
      throw new Error(`log: cannot compact at ${index}, the log holds ${this.#base + 1}..${this.lastIndex}`)
    }
    this.#entries = this.#entries.slice(index - this.#base)
    this.#base = index
    this.#baseTermValue = term
  }

  /** Starts anew behind a snapshot. */
  reset(index: number, term: number): void {
    this.#base = index
    this.#baseTermValue = term
    this.#entries = []
  }

  /** Whether a candidate whose log ends like this may be trusted with everything that is here (thesis 3.6.1). */
  isUpToDate(lastIndex: number, lastTerm: number): boolean {
    return lastTerm > this.lastTerm || (lastTerm === this.lastTerm && lastIndex >= this.lastIndex)
  }

  /**
   * Where a leader should try again after `previousIndex` did not match: the start of the conflicting term, or our end.
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
