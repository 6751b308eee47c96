/** Scans of few rows, which are read run by run, so that they are answered at once when their runs are in memory. */
import type { ImmediateAnswer, IndexRow, IndexState, ScanIndexRequest } from '@sectional/core'
import { indexHead } from './index-head.ts'
import type { SoughtRange, SoughtRanges } from './place-search.ts'
import type { RowTree, Run } from './row-tree.ts'
import type { RunRows } from './run-rows.ts'
import { ScannedRows } from './scanned-rows.ts'

/** The most ranges, rows and runs of such a scan. It is answered in one turn of the event loop. */
const rangesMax = 16
const rowsMax = 256
const runsMax = 32
/** The most bytes of these runs. A run of a few large rows may have more than other runs. */
const bytesMax = 2 * 1024 * 1024

type Answer = ImmediateAnswer<IndexRow>

/** A request, and the index that it reads. */
export interface ShortScan {
  readonly tree: RowTree
  readonly state: IndexState
  readonly request: ScanIndexRequest
  readonly places: SoughtRanges
}

/** Begins a scan that is answered if all of its runs are in memory, and it is short. */
export function beginRunScan(read: ShortScan): RunScan | undefined {
  if (isLong(read)) return undefined
  const scan = new RunScan(read)
  scan.begin()
  return scan
}

/** Returns the answer if the scan is short, and reads the runs that are not in memory. */
export async function scanByRuns(read: ShortScan): Promise<Answer | undefined> {
  if (isLong(read)) return undefined
  const scan = new RunScan(read)
  for (;;) {
    const next = scan.continue()
    if (next === 'complete') return scan.answer
    if (next === 'long') return undefined
    scan.found = await read.tree.rows(next)
  }
}

/** Returns true for a request that surely has too many rows or runs, and for one that leaves rows out. */
function isLong({ state: { rowCount }, request: { ranges, after, skip = 0, limit = Infinity } }: ShortScan): boolean {
  return after !== undefined || skip > 0 || ranges.length > rangesMax
    || limit > rowsMax && rowCount > rowsMax && ranges.some(isEverything)
}

function isEverything({ lower, upper }: ScanIndexRequest['ranges'][number]): boolean {
  return lower === undefined && upper === undefined
}

/** One scan. It stops at each run that is not in memory, and continues when that was read. */
export class RunScan {
  readonly #read: ShortScan
  readonly #places: readonly SoughtRange[]
  readonly #limit: number
  /** The index of the range that is read. */
  #range = 0
  /** The run with which `continue` begins, which may be one that it has returned. */
  #next: Run | undefined
  /** The number of runs that were read. */
  #runs = 0
  #bytes = 0
  #rowsBefore = 0
  #rows: ScannedRows | undefined
  /** The rows of `#next`, when they were found or read. */
  found: RunRows | undefined
  /** What `touch` has read. V8 leaves out a read whose result is not used. */
  touched = 0

  constructor(read: ShortScan) {
    this.#read = read
    this.#places = read.places.of(read.request.ranges)
    this.#limit = read.request.limit ?? Infinity
  }

  /** The answer of a scan that is complete. */
  get answer(): Answer {
    return { head: indexHead(this.#read.state, this.#rowsBefore), rows: this.#rows ?? [] }
  }

  /** Finds the run in which the first rows are. */
  begin(): void {
    const [range] = this.#places
    if (range !== undefined) this.#next = this.#firstRun(range)
  }

  /** Finds the rows of that run if they are in memory. */
  locate(): void {
    if (this.#next !== undefined) this.found = this.#read.tree.rowsInMemory(this.#next)
  }

  /** Reads the memory of these rows (`ImmediateScan`). */
  touch(): void {
    if (this.found !== undefined) this.touched = this.found.touch()
  }

  #firstRun({ from, to }: SoughtRange): Run {
    const { tree, request: { descending } } = this.#read
    return tree.runOf(descending ? to : from)
  }

  /**
   * Reads until the end.
   *
   * @returns a run that is not in memory: its rows must be put into `found`; `long` for too many rows, runs or bytes
   */
  continue(): Run | 'complete' | 'long' {
    const { tree, request: { descending } } = this.#read
    for (; this.#range < this.#places.length; this.#range++) {
      const range = this.#places[this.#range]!
      // The rows before the first range are counted also when it has no rows.
      if (this.#range > 0 && (range.isEmpty || this.#left <= 0)) continue
      let run = this.#next ?? this.#firstRun(range)
      this.#next = undefined
      for (;;) {
        const rows = this.found ?? tree.rowsInMemory(run)
        if (rows === undefined) return this.#next = run
        this.found = undefined
        this.#bytes += rows.bytes
        if (++this.#runs > runsMax || this.#bytes > bytesMax) return 'long'
        const isLast = this.#add(range, run, rows)
        if (this.#rows !== undefined && this.#rows.length > rowsMax) return 'long'
        if (isLast || this.#left <= 0) break
        run = tree.nextRun(run, descending)
      }
    }
    return 'complete'
  }

  /** The number of rows that the answer may still have. */
  get #left(): number {
    return this.#rows === undefined ? this.#limit : this.#limit - this.#rows.length
  }

  /** Adds the rows of a run that are in a range. Returns whether the range ends there, in the direction of the scan. */
  #add({ from, to, isEmpty }: SoughtRange, run: Run, rows: RunRows): boolean {
    const { request: { descending }, state: { rowCount } } = this.#read
    const first = rows.indexOf(from)
    const end = rows.indexOf(to, isEmpty ? 0 : first)
    if (this.#runs === 1) this.#rowsBefore = descending ? rowCount - run.before - end : run.before + first
    if (first < end && this.#left > 0) {
      this.#rows ??= new ScannedRows(descending)
      this.#rows.add(this.#range, rows, first, end, this.#left)
    }
    return isEmpty || (descending
      ? first > 0 || from.isAtOrBehind(run.from)
      : end < rows.length || to.isAtOrBefore(run.to))
  }
}
