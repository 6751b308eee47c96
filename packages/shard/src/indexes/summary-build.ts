import type { Turns } from '@sectional/runtime'
import { firstPlace, type IndexKeys, placesEnd } from './index-keys.ts'
import { readRows, type StoredRow } from './row-reader.ts'
import { RowValues } from './row-values.ts'
import { encodePage, partBytesMax, partItems, type Summary, summaryBytes } from './summary-page.ts'
import { summarise, type SummaryParts } from './summary-update.ts'

/** Number of runs that are reduced by one call of the indexer. */
const runsReduced = 32

/** Receives the pages of a new tree of summaries, in any order. */
export type WritePage = (key: string, bytes: Uint8Array) => Promise<void>

/** Receives the rows of each run, in the order of the runs. */
export type OnRun = (place: string, rows: readonly StoredRow[]) => void

/**
 * Summarises all rows, in one pass over them. The pages may be read when all are written, and `height` is in the state
 * of the index.
 *
 * @returns the height; 0 when there are no rows
 */
export async function buildSummaries(
  parts: Omit<SummaryParts, 'height'>, turns: Turns, write: WritePage, onRun: OnRun,
): Promise<number> {
  const builder = new SummaryBuilder(parts, write, onRun)
  for await (const page of readRows(parts.source, parts.keys, { from: firstPlace, to: placesEnd })) {
    await turns.pause()
    for (const row of page) await builder.add(row)
  }
  return builder.finish()
}

class SummaryBuilder {
  readonly #keys: IndexKeys
  readonly #values: RowValues
  readonly #write: WritePage
  readonly #onRun: OnRun
  /** The runs that are not reduced yet; rows are added to the last one. */
  #runs: StoredRow[][] = []
  #runBytes = 0
  /** The entries of the page of each level that is not written yet. The index is the level. */
  readonly #open: Summary[][] = []
  #hasSummaries = false

  constructor({ keys, indexer, definition }: Omit<SummaryParts, 'height'>, write: WritePage, onRun: OnRun) {
    this.#keys = keys
    this.#values = new RowValues(indexer, definition)
    this.#write = write
    this.#onRun = onRun
  }

  async add(row: StoredRow): Promise<void> {
    const bytes = row.place.length + row.value.length
    const last = this.#runs.at(-1)
    if (last !== undefined && last.length < partItems && this.#runBytes + bytes <= partBytesMax) {
      last.push(row)
      this.#runBytes += bytes
      return
    }
    if (this.#runs.length >= runsReduced) await this.#reduceRuns()
    this.#runs.push([row])
    this.#runBytes = bytes
  }

  async finish(): Promise<number> {
    await this.#reduceRuns()
    if (!this.#hasSummaries) return 0
    for (let level = 1; ; level++) {
      const entries = this.#open[level] ?? []
      if (level === this.#open.length - 1) {
        await this.#write(this.#keys.page(level, firstPlace), encodePage(entries))
        return level
      }
      if (entries.length > 0) await this.#flush(level)
    }
  }

  async #reduceRuns(): Promise<void> {
    const runs = this.#runs
    this.#runs = []
    const values = await this.#values.ofRows(runs)
    for (const [at, rows] of runs.entries()) {
      const place = this.#hasSummaries ? rows[0]!.place : firstPlace
      this.#hasSummaries = true
      this.#onRun(place, rows)
      await this.#push(1, { place, count: rows.length, value: values[at]! })
    }
  }

  async #push(level: number, summary: Summary): Promise<void> {
    const open = this.#open[level] ??= []
    const bytes = open.reduce((sum, entry) => sum + summaryBytes(entry), summaryBytes(summary))
    if (open.length >= partItems || open.length > 1 && bytes > partBytesMax) await this.#flush(level)
    this.#open[level]!.push(summary)
  }

  /** Writes the open page of a level, and begins a new one. */
  async #flush(level: number): Promise<void> {
    const entries = this.#open[level]!
    this.#open[level] = []
    await this.#write(this.#keys.page(level, entries[0]!.place), encodePage(entries))
    const [summary] = await summarise(this.#values, [entries])
    await this.#push(level + 1, summary!)
  }
}
