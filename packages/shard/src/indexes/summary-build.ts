import type { Turns } from '@sectional/runtime'
import { firstPlace, type IndexKeys, placesEnd, separatingPlace } from './index-keys.ts'
import { readRows, type StoredRow } from './row-reader.ts'
import { RowValues } from './row-values.ts'
import { encodePage, partBytesMax, partItems, type Summary, summaryBytes } from './summary-page.ts'
import { summarise, type SummaryParts } from './summary-update.ts'

/** Number of runs that are reduced by one call of the indexer. */
const runsReduced = 32

/** Receives the pages of a new tree of summaries, in any order. */
export type WritePage = (key: string, bytes: Uint8Array) => Promise<void>

/** Receives the rows of each run, in the order of the runs. Not called when the values of the rows were not read. */
export type OnRun = (place: string, rows: readonly StoredRow[]) => void

/** Values up to this size need not be read when there is no reduce function. */
const unreadValueBytesMax = 512

/**
 * Summarises all rows, in one pass over them. The pages may be read when all are written, and `height` is in the state
 * of the index.
 *
 * @param valueBytesMax no row has a larger value; Infinity when this is not known
 * @returns the height; 0 when there are no rows
 */
export async function buildSummaries(
  parts: Omit<SummaryParts, 'height'>, turns: Turns, valueBytesMax: number, write: WritePage, onRun: OnRun,
): Promise<number> {
  const { source, keys, definition } = parts
  const values = definition.reduce !== null || valueBytesMax > unreadValueBytesMax
  const builder = new SummaryBuilder(parts, write, values ? onRun : () => {})
  for await (const page of readRows(source, keys, { from: firstPlace, to: placesEnd }, { values })) {
    await turns.pause()
    for (const row of page) {
      const isFull = builder.add(row, row.place.length + (values ? row.value.length : valueBytesMax))
      if (isFull) await builder.reduceFullRuns()
    }
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
  /** The place of the last row that is summarised. */
  #lastPlace: string | undefined

  constructor({ keys, indexer, definition }: Omit<SummaryParts, 'height'>, write: WritePage, onRun: OnRun) {
    this.#keys = keys
    this.#values = new RowValues(indexer, definition)
    this.#write = write
    this.#onRun = onRun
  }

  /**
   * @param bytes of the row, or more
   * @returns true when `reduceFullRuns` should be called before the next row
   */
  add(row: StoredRow, bytes: number): boolean {
    const last = this.#runs.at(-1)
    if (last !== undefined && last.length < partItems && this.#runBytes + bytes <= partBytesMax) {
      last.push(row)
      this.#runBytes += bytes
    } else {
      this.#runs.push([row])
      this.#runBytes = bytes
    }
    return this.#runs.length > runsReduced
  }

  /** Reduces all runs but the last one. */
  async reduceFullRuns(): Promise<void> {
    const last = this.#runs.splice(-1)
    await this.#reduceRuns()
    this.#runs = last
  }

  async finish(): Promise<number> {
    await this.#reduceRuns()
    if (this.#lastPlace === undefined) return 0
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
      const place = this.#lastPlace === undefined ? firstPlace : separatingPlace(this.#lastPlace, rows[0]!.place)
      this.#lastPlace = rows.at(-1)!.place
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
