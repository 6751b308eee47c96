import type { IndexHead, IndexRow, PageLimits, ScanIndexRequest } from '@sectional/core'
import { compareUtf8 } from '@sectional/core'
import type { Turns } from '@sectional/runtime'
import { indexState } from './index-content.ts'
import { afterPlace, placeRange, type PlaceRange, placeText, readPlace } from './index-keys.ts'
import type { IndexSnapshot } from './index-snapshot.ts'
import { SoughtRanges } from './place-search.ts'
import { readRows, rowPages, type RowReader, type StoredRow } from './row-reader.ts'
import { RowTree } from './row-tree.ts'
import { scanByRuns } from './run-scan.ts'

/** After this many ranges, the rows that were found are sent although they fill no page. */
const rangesOfPage = 4096

/**
 * Lists the head, and the rows of the ranges.
 *
 * @param check throws when the call has ended
 * @param limits a page ends with the row whose value reaches the bytes
 */
export async function* scanIndex(
  snapshot: IndexSnapshot, request: ScanIndexRequest, turns: Pick<Turns, 'pause'>, check: () => void,
  limits: PageLimits = rowPages,
): AsyncGenerator<readonly (IndexHead | IndexRow)[]> {
  const { source, keys, state } = snapshot
  const { pageRows, pageBytes } = limits
  const reader = snapshot.rows(check)
  const short = reader instanceof RowTree
    ? await scanByRuns({ tree: reader, state: indexState(state), request, places: new SoughtRanges() })
    : undefined
  if (short !== undefined) return yield [short.head, ...short.rows]
  const { ranges, descending, after, skip = 0, limit = Infinity } = request
  const before = await rowsBefore(reader, ranges[0] ?? {}, state.rowCount, descending)
  const page = new Page({ kind: 'head', ...indexState(state), rowsBefore: before })
  let left = limit
  let toSkip = skip
  for (const [range, bounds] of ranges.entries()) {
    if (left <= 0) break
    if (after !== undefined && range < after.range) continue
    await turns.pause()
    check()
    let places = placeRange(bounds)
    if (range === after?.range) places = behindPlace(places, placeText(after), descending)
    if (toSkip > 0) {
      const skipped = await skipRows(reader, places, toSkip, descending)
      places = skipped.places
      toSkip -= skipped.count
    }
    const options = { reverse: descending, ...(left < pageRows && { limit: left }) }
    const tree = ranges.length > 1 && reader instanceof RowTree ? reader : undefined
    const inRun = tree && await rowsOfRun(tree, places, descending)
    const found = inRun === undefined ? readRows(source, keys, places, options, limits) : [inRun]
    for await (const rows of found) {
      check()
      const chosen = rows.slice(0, left)
      if (page.length > 0 && page.length + chosen.length > pageRows + 1) yield page.take()
      for (const { place, value } of chosen) {
        const { key, id, number } = readPlace(place)
        page.add({ kind: 'row', range, key, id, number, value })
        if (page.bytes >= pageBytes) yield page.take()
      }
      left -= chosen.length
      if (left <= 0) break
      // More rows of this size would be held until the next page has its bytes.
      if (page.bytes >= pageBytes / 2) yield page.take()
    }
    if (range % rangesOfPage === rangesOfPage - 1 && page.length > 0) yield page.take()
  }
  if (page.length > 0) yield page.take()
}

/** The rows that are sent next. */
class Page {
  #rows: (IndexHead | IndexRow)[]
  #bytes = 0

  constructor(head: IndexHead) { this.#rows = [head] }

  get length(): number { return this.#rows.length }
  /** Bytes of the values of the rows. */
  get bytes(): number { return this.#bytes }

  add(row: IndexRow): void {
    this.#rows.push(row)
    this.#bytes += row.value.length
  }

  /** Returns the rows, and begins a new page. */
  take(): readonly (IndexHead | IndexRow)[] {
    const rows = this.#rows
    this.#rows = []
    this.#bytes = 0
    return rows
  }
}

/** Returns the rows of a range that lies within one run, so that scans of many short ranges need no iterators. */
async function rowsOfRun(
  tree: RowTree, places: PlaceRange, descending: boolean,
): Promise<readonly StoredRow[] | undefined> {
  if (compareUtf8(places.from, places.to) >= 0) return []
  const run = tree.runAt(places.from)
  if (compareUtf8(run.to, places.to) < 0) return undefined
  const rows = (tree.rowsInMemory(run) ?? await tree.rows(run)).within(places)
  return descending ? rows.toReversed() : rows
}

/** Counts the rows before the first range in the direction of the scan. */
async function rowsBefore(
  reader: RowReader, range: ScanIndexRequest['ranges'][number], rowCount: number, descending: boolean,
): Promise<number> {
  const { from, to } = placeRange(range)
  if (!descending) return range.lower === undefined ? 0 : reader.countBefore(from)
  return range.upper === undefined ? 0 : rowCount - await reader.countBefore(to)
}

/** Returns the part of a range that is strictly behind a place in the direction of the scan. */
export function behindPlace({ from, to }: PlaceRange, place: string, descending: boolean): PlaceRange {
  if (descending) return { from, to: compareUtf8(place, to) < 0 ? place : to }
  const next = afterPlace(place)
  return { from: compareUtf8(next, from) > 0 ? next : from, to }
}

/**
 * Leaves out rows at the beginning of a range, in the direction of the scan.
 *
 * @returns the rest of the range, and the number of rows that were left out; at most `skip`
 */
async function skipRows(
  reader: RowReader, { from, to }: PlaceRange, skip: number, descending: boolean,
): Promise<{ readonly places: PlaceRange; readonly count: number }> {
  if (compareUtf8(from, to) >= 0) return { places: { from, to }, count: 0 }
  const first = await reader.countBefore(from)
  const end = await reader.countBefore(to)
  if (end - first <= skip) return { places: { from, to: from }, count: end - first }
  const places = descending
    ? { from, to: await reader.placeAt(end - skip) }
    : { from: await reader.placeAt(first + skip), to }
  return { places, count: skip }
}
