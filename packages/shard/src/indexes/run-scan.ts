/** Scans of few rows, which are read run by run, so that they are answered from memory when their runs are there. */
import type { ImmediateAnswer, IndexRow, ScanIndexRequest } from '@sectional/core'
import { compareUtf8 } from '@sectional/core'
import { indexState } from './index-content.ts'
import { placeRange, type PlaceRange } from './index-keys.ts'
import type { StoredState } from './index-records.ts'
import { firstRow, rowsWithin } from './row-list.ts'
import { rowPlace, type StoredRow } from './row-reader.ts'
import type { RowTree, Run } from './row-tree.ts'

/** The most ranges and rows of such a scan. It is answered in one turn of the event loop. */
const rangesMax = 16
const rowsMax = 256

/** Yields a run whose rows are not in memory, and continues with its rows. */
type RunScan<Result> = Generator<Run, Result, readonly StoredRow[]>
type Answer = ImmediateAnswer<IndexRow>

/** Returns the answer if all runs are in memory and the scan is short. */
export function scanInMemory(tree: RowTree, state: StoredState, request: ScanIndexRequest): Answer | undefined {
  const step = scanRuns(tree, state, request).next()
  return step.done === true ? step.value : undefined
}

/** Returns the answer if the scan is short, and reads the runs that are not in memory. */
export async function scanByRuns(
  tree: RowTree, state: StoredState, request: ScanIndexRequest,
): Promise<Answer | undefined> {
  const scan = scanRuns(tree, state, request)
  let step = scan.next()
  while (step.done !== true) step = scan.next(await tree.rows(step.value))
  return step.value
}

/** Returns undefined when the answer has more than `rowsMax` rows, and for requests that leave rows out. */
function* scanRuns(
  tree: RowTree, state: StoredState, { ranges, descending, after, skip = 0, limit = Infinity }: ScanIndexRequest,
): RunScan<Answer | undefined> {
  if (after !== undefined || skip > 0 || ranges.length > rangesMax) return undefined
  if (limit > rowsMax && state.rowCount > rowsMax && ranges.some(isEverything)) return undefined
  const rowsBefore = yield* countBefore(tree, ranges[0] ?? {}, state.rowCount, descending)
  const rows: IndexRow[] = []
  for (const [range, bounds] of ranges.entries()) {
    const places = placeRange(bounds)
    if (compareUtf8(places.from, places.to) >= 0) continue
    for (const run of runsOf(tree, places, descending)) {
      if (rows.length >= limit) break
      const found = rowsWithin(tree.rowsInMemory(run) ?? (yield run), places)
      for (const row of (descending ? found.toReversed() : found).slice(0, limit - rows.length)) {
        const { key, id, number } = rowPlace(row)
        rows.push({ kind: 'row', range, key, id, number, value: row.value })
      }
      if (rows.length > rowsMax) return undefined
    }
  }
  return { head: { kind: 'head', ...indexState(state), rowsBefore }, rows }
}

function isEverything({ lower, upper }: ScanIndexRequest['ranges'][number]): boolean {
  return lower === undefined && upper === undefined
}

/** Counts the rows before the first range in the direction of the scan. */
function* countBefore(
  tree: RowTree, range: ScanIndexRequest['ranges'][number], rowCount: number, descending: boolean,
): RunScan<number> {
  if ((descending ? range.upper : range.lower) === undefined) return 0
  const { from, to } = placeRange(range)
  const place = descending ? to : from
  const run = tree.runAt(place)
  const rows = place === run.from ? [] : tree.rowsInMemory(run) ?? (yield run)
  const count = run.before + firstRow(rows, row => compareUtf8(row.place, place) >= 0)
  return descending ? rowCount - count : count
}

/** Lists the runs in which a range lies, in the direction of the scan. */
function* runsOf(tree: RowTree, { from, to }: PlaceRange, descending: boolean): Generator<Run> {
  let run = descending ? tree.runBefore(to) : tree.runAt(from)
  for (;;) {
    yield run
    if (descending ? compareUtf8(run.from, from) <= 0 : compareUtf8(run.to, to) >= 0) return
    run = descending ? tree.runBefore(run.from) : tree.runAt(run.to)
  }
}
