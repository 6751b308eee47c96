import { compareUtf8 } from '@sectional/core'
import { DamagedRecordError } from '../records/damaged-record.ts'
import { firstPlace, type IndexKeys, type PlaceRange, placesEnd } from './index-keys.ts'
import { noCache, type PartCache } from './part-cache.ts'
import { type IndexSource, readRows, type RowPart, type RowReader, type StoredRow } from './row-reader.ts'
import { SoughtPlace } from './place-search.ts'
import { RunRows } from './run-rows.ts'
import { decodePage, entryAt, type PageEntry, type SummaryPage } from './summary-page.ts'

/** A run of rows: the range of one entry of a page of level 1. */
export class Run implements PlaceRange {
  /** The entry of the run in its page. */
  readonly entry: PageEntry
  readonly #page: SummaryPage
  readonly #index: number
  /** The number of rows before the page. */
  readonly #beforePage: number
  /** Where the page ends. */
  readonly #pageEnd: string

  /** @param index of the entry in the page */
  constructor(page: SummaryPage, index: number, beforePage: number, pageEnd: string) {
    this.entry = page.entries[index]!
    this.#page = page
    this.#index = index
    this.#beforePage = beforePage
    this.#pageEnd = pageEnd
  }

  get from(): string { return this.entry.place }
  get to(): string { return this.#page.entries[this.#index + 1]?.place ?? this.#pageEnd }
  /** The number of rows of the run. */
  get count(): number { return this.entry.count }
  /** The number of rows before the run. */
  get before(): number { return this.#beforePage + this.entry.before }

  /** Returns the next run of the same page, or the one before it. */
  neighbour(isBefore: boolean): Run | undefined {
    const index = this.#index + (isBefore ? -1 : 1)
    if (index < 0 || index >= this.#page.entries.length) return undefined
    return new Run(this.#page, index, this.#beforePage, this.#pageEnd)
  }
}

type RunRange = Pick<Run, 'from' | 'to' | 'count'>

/** Runs whose rows are kept: a range begins in the run in which the one before it ended. */
const runsKept = 2

/** Reads rows by means of their summaries. Each read costs one page of each level, and the rows of one or two runs. */
export class RowTree implements RowReader {
  readonly #source: IndexSource
  readonly #keys: IndexKeys
  readonly #height: number
  readonly #cache: PartCache
  /** The pages that were read and not found in the cache, by key. Absent as long as there are none, as are `#runs`. */
  #pages: Map<string, SummaryPage> | undefined
  /** The rows of the last runs that were read, newest last, by the place at which the run begins. */
  #runs: Map<string, Promise<RunRows>> | undefined

  /**
   * @param height at least 1 (`StoredState.height`)
   * @param cache contains parts of the same state only
   */
  constructor(source: IndexSource, keys: IndexKeys, height: number, cache: PartCache = noCache) {
    this.#cache = cache
    this.#source = source
    this.#keys = keys
    this.#height = height
  }

  async countBefore(place: string): Promise<number> {
    const run = this.runAt(place)
    if (place === run.from) return run.before
    return run.before + (await this.rows(run)).indexOf(new SoughtPlace(place))
  }

  async placeAt(count: number): Promise<string> {
    const run = this.#descend((page, before) => {
      let at = page.entries.length - 1
      while (at > 0 && before + page.entries[at]!.before > count) at--
      return at
    })
    const rows = await this.rows(run)
    return count - run.before < rows.length ? rows.at(count - run.before).place : placesEnd
  }

  async endRow(range: PlaceRange, last: boolean): Promise<StoredRow | undefined> {
    if (compareUtf8(range.from, range.to) >= 0) return undefined
    let run = last ? this.runBefore(range.to) : this.runAt(range.from)
    for (;;) {
      const rows = await this.rows(run)
      const { first, end } = rows.bounds(range)
      if (first < end) return rows.at(last ? end - 1 : first)
      if (last ? compareUtf8(run.from, range.from) <= 0 : compareUtf8(run.to, range.to) >= 0) return undefined
      run = this.nextRun(run, last)
    }
  }

  parts(range: PlaceRange): AsyncGenerator<RowPart> {
    return this.#parts(this.#height, { from: firstPlace, to: placesEnd }, range)
  }

  /** Returns the rows of a run if they are in memory. */
  rowsInMemory({ entry }: Run): RunRows | undefined {
    return this.#cache.below(0, entry) as RunRows | undefined
  }

  /** Returns the run in which a row of that place is, or would be. */
  runAt(place: string): Run {
    return this.#descend(page => entryOf(page, place))
  }

  /** Like `runAt`, with comparisons that are cheaper. */
  runOf(place: SoughtPlace): Run {
    return this.#descend(page => page.indexOf(place))
  }

  /**
   * Returns a page.
   * @throws DamagedRecordError when the page is damaged or missing
   */
  page(level: number, place: string): SummaryPage {
    return this.#cache.get(level, place) as SummaryPage | undefined ?? this.#readPage(level, place)
  }

  #readPage(level: number, place: string): SummaryPage {
    const key = this.#keys.page(level, place)
    this.#pages ??= new Map()
    let page = this.#pages.get(key)
    if (page === undefined) {
      const bytes = this.#source.getSync(key)
      if (bytes === undefined) throw new DamagedRecordError('a page of summaries is missing')
      page = decodePage(bytes)
      this.#cache.set(level, place, page, page.bytes)
      this.#pages.set(key, page)
    }
    return page
  }

  /** Returns the last run that begins before a place. */
  runBefore(place: string): Run {
    return this.#descend(({ entries }) => entryAt(entries, entry => compareUtf8(entry, place) >= 0))
  }

  /** Returns the run behind another one, or the one before it, which must exist. */
  nextRun(run: Run, descending: boolean): Run {
    return run.neighbour(descending) ?? (descending ? this.runBefore(run.from) : this.runAt(run.to))
  }

  /** Returns where the page of a level begins in which a row of that place is, or would be. */
  pageAt(level: number, place: string): string {
    let page = this.page(this.#height, firstPlace)
    for (let below = this.#height - 1; below >= level; below--) {
      page = this.#pageBelow(below, page.entries[entryOf(page, place)]!)
    }
    return page.entries[0]!.place
  }

  async* #parts(level: number, { from, to }: PlaceRange, range: PlaceRange): AsyncGenerator<RowPart> {
    const { entries } = this.page(level, from)
    const first = entryAt(entries, place => compareUtf8(place, range.from) > 0)
    for (let at = first; at < entries.length; at++) {
      const { place, count, value } = entries[at]!
      if (compareUtf8(place, range.to) >= 0) return
      const part = { from: place, to: entries[at + 1]?.place ?? to, count }
      if (count === 0) continue
      if (compareUtf8(range.from, part.from) <= 0 && compareUtf8(part.to, range.to) <= 0) {
        yield { kind: 'value', value }
      } else if (level > 1) yield* this.#parts(level - 1, part, range)
      else {
        const rows = (await this.rows(part)).within(range)
        if (rows.length > 0) yield { kind: 'rows', rows }
      }
    }
  }

  /**
   * Goes from the root to a run.
   * @param choose returns the index of the entry in which to continue, given the number of rows before the page
   */
  #descend(choose: (page: SummaryPage, before: number) => number): Run {
    let page = this.page(this.#height, firstPlace)
    let before = 0
    let end = placesEnd
    for (let level = this.#height - 1; ; level--) {
      const at = choose(page, before)
      if (level === 0) return new Run(page, at, before, end)
      const entry = page.entries[at]!
      before += entry.before
      end = page.entries[at + 1]?.place ?? end
      page = this.#pageBelow(level, entry)
    }
  }

  #pageBelow(level: number, entry: PageEntry): SummaryPage {
    return this.#cache.below(level, entry) as SummaryPage | undefined ?? this.#readPage(level, entry.place)
  }

  /** Returns the rows of a run. */
  rows(run: RunRange): Promise<RunRows> {
    this.#runs ??= new Map()
    let rows = this.#runs.get(run.from)
    if (rows === undefined) rows = this.#readRun(run)
    this.#runs.delete(run.from)
    this.#runs.set(run.from, rows)
    if (this.#runs.size > runsKept) this.#runs.delete(this.#runs.keys().next().value!)
    return rows
  }

  async #readRun(run: RunRange): Promise<RunRows> {
    const cached = this.#cache.get(0, run.from) as RunRows | undefined
    if (cached !== undefined) return cached
    const rows = new RunRows(await readRun(this.#source, this.#keys, run))
    this.#cache.set(0, run.from, rows, rows.bytes)
    return rows
  }
}

/** Returns the index of the entry of a page in which a row of that place is, or would be. */
function entryOf({ entries }: SummaryPage, place: string): number {
  return entryAt(entries, entry => compareUtf8(entry, place) > 0)
}

/** Reads all rows of a run. @throws DamagedRecordError when a row is damaged, or it has not as many as it should */
async function readRun(source: IndexSource, keys: IndexKeys, run: RunRange): Promise<readonly StoredRow[]> {
  const rows: StoredRow[] = []
  for await (const page of readRows(source, keys, run)) rows.push(...page)
  if (rows.length !== run.count) {
    throw new DamagedRecordError(`a range of an index has ${rows.length} rows, and ${run.count} were written`)
  }
  return rows
}
