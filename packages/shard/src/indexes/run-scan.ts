/** Scans of few rows, which are read run by run, so that they are answered at once when their runs are in memory. */
import type { ImmediateAnswer, IndexRow, IndexState, ScanIndexRequest } from '@sectional/core'
import { compareUtf8 } from '@sectional/core'
import type { PlaceRange, PlaceRanges } from './index-keys.ts'
import type { RowTree, Run } from './row-tree.ts'
import type { RunRows } from './run-rows.ts'
import { ScannedRows } from './scanned-rows.ts'

/** The most ranges, rows and runs of such a scan. It is answered in one turn of the event loop. */
const rangesMax = 16
const rowsMax = 256
const runsMax = 32

/** Yields a run whose rows are not in memory, and continues with its rows. */
type RunScan<Result> = Generator<Run, Result, RunRows>
type Answer = ImmediateAnswer<IndexRow>

/** A request, and the index that it reads. */
export interface ShortScan {
  readonly tree: RowTree
  readonly state: IndexState
  readonly request: ScanIndexRequest
  readonly placesOf: PlaceRanges
}

/** Returns the answer if all runs are in memory and the scan is short. */
export function scanInMemory(read: ShortScan): Answer | undefined {
  const step = scanRuns(read).next()
  return step.done === true ? step.value : undefined
}

/** Returns the answer if the scan is short, and reads the runs that are not in memory. */
export async function scanByRuns(read: ShortScan): Promise<Answer | undefined> {
  const scan = scanRuns(read)
  let step = scan.next()
  while (step.done !== true) step = scan.next(await read.tree.rows(step.value))
  return step.value
}

/** Returns undefined when the answer has too many rows or runs, and for requests that leave rows out. */
function* scanRuns({ tree, state, request, placesOf }: ShortScan): RunScan<Answer | undefined> {
  const { ranges, descending, after, skip = 0, limit = Infinity } = request
  if (after !== undefined || skip > 0 || ranges.length > rangesMax) return undefined
  if (limit > rowsMax && state.rowCount > rowsMax && ranges.some(isEverything)) return undefined
  const first = ranges[0] && firstRun(tree, ranges[0], placesOf.of(ranges[0]), descending)
  const firstRows = first && (tree.rowsInMemory(first.run) ?? (yield first.run))
  const rows = new ScannedRows(descending)
  let runs = 0
  for (let range = 0; range < ranges.length; range++) {
    const places = placesOf.of(ranges[range]!)
    if (compareUtf8(places.from, places.to) >= 0) continue
    let run = range === 0 && first !== undefined && !descending ? first.run
      : descending ? tree.runBefore(places.to) : tree.runAt(places.from)
    while (rows.length < limit) {
      if (++runs > runsMax) return undefined
      const found = first !== undefined && run.from === first.run.from
        ? firstRows! : tree.rowsInMemory(run) ?? (yield run)
      rows.add(range, found, found.bounds(places), limit - rows.length)
      if (rows.length > rowsMax) return undefined
      if (isLast(run, places, descending)) break
      run = descending ? tree.runBefore(run.from) : tree.runAt(run.to)
    }
  }
  const rowsBefore = first === undefined ? 0 : rowsBeforeFirst(first, firstRows!, state.rowCount, descending)
  return { head: { kind: 'head', ...state, rowsBefore }, rows }
}

function isEverything({ lower, upper }: ScanIndexRequest['ranges'][number]): boolean {
  return lower === undefined && upper === undefined
}

/** The bound at which the scan begins, and the run in which it is. */
interface FirstRun { readonly place: string; readonly run: Run }

/** Returns undefined when the scan begins with the first row of the index in its direction. */
function firstRun(
  tree: RowTree, range: ScanIndexRequest['ranges'][number], { from, to }: PlaceRange, descending: boolean,
): FirstRun | undefined {
  if ((descending ? range.upper : range.lower) === undefined) return undefined
  const place = descending ? to : from
  return { place, run: tree.runAt(place) }
}

/** Counts the rows before the first range in the direction of the scan. */
function rowsBeforeFirst({ place, run }: FirstRun, rows: RunRows, rowCount: number, descending: boolean): number {
  const count = run.before + rows.indexOf(place)
  return descending ? rowCount - count : count
}

/** Returns whether a range ends in a run, in the direction of the scan. */
function isLast(run: Run, { from, to }: PlaceRange, descending: boolean): boolean {
  return descending ? compareUtf8(run.from, from) <= 0 : compareUtf8(run.to, to) >= 0
}
