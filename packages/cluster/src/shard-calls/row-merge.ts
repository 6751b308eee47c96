import type { PageLimits, RowSequence } from '@sectional/core'
import { makeHeap, sink } from './binary-heap.ts'

export interface RowMergeOptions<Row> extends PageLimits {
  /** Returns less than zero when `a` comes before `b` in the order of the sources and of the result. */
  readonly compare: (a: Row, b: Row) => number
  /** The bytes that a row counts for in a page. */
  readonly bytesOf: (row: Row) => number
  /** Number of rows to leave out at the beginning. */
  readonly skip: number
  /** Largest number of rows to return; null: all. */
  readonly limit: number | null
}

interface ListCursor<Row> {
  readonly list: RowSequence<Row>
  at: number
  /** The row at `at`. */
  row: Row
}

interface Cursor<Row> {
  page: readonly Row[]
  at: number
  readonly source: AsyncIterator<readonly Row[]>
}

/**
 * Merges sources whose rows are in the order of `compare` into one sequence in that order. It keeps a heap of the
 * sources, ordered by their next rows. When the result is closed, it closes every source, even if not all rows were
 * read.
 */
export async function* mergeRows<Row>(
  sources: readonly AsyncIterable<readonly Row[]>[],
  { compare, bytesOf, skip, limit, pageRows, pageBytes }: RowMergeOptions<Row>,
): AsyncGenerator<readonly Row[]> {
  const before = (a: Cursor<Row>, b: Cursor<Row>): boolean => compare(a.page[a.at]!, b.page[b.at]!) < 0
  const cursors = sources.map((source): Cursor<Row> => ({ page: [], at: 0, source: source[Symbol.asyncIterator]() }))
  try {
    const filled = await settleAll(cursors.map(fill))
    const heap = cursors.filter((_, i) => filled[i])
    makeHeap(heap, before)
    let toSkip = skip
    let rest = limit ?? Infinity
    let out: Row[] = []
    let bytes = 0
    while (heap.length > 0 && rest > 0) {
      const top = heap[0]!
      const row = top.page[top.at++]!
      if (toSkip > 0) toSkip--
      else {
        out.push(row)
        rest--
        bytes += bytesOf(row)
        if (out.length >= pageRows || bytes >= pageBytes) {
          yield out
          out = []
          bytes = 0
        }
      }
      if (top.at >= top.page.length && !await fill(top)) {
        const last = heap.pop()!
        if (heap.length > 0) heap[0] = last
      }
      if (heap.length > 1) sink(heap, 0, before)
    }
    if (out.length > 0) yield out
  } finally {
    await Promise.allSettled(cursors.map(cursor => cursor.source.return?.()))
  }
}

/** Merges lists as `mergeRows` merges sources, into one list. */
export function mergeLists<Row>(
  lists: readonly RowSequence<Row>[],
  { compare, skip, limit }: Pick<RowMergeOptions<Row>, 'compare' | 'skip' | 'limit'>,
): readonly Row[] {
  const filled = lists.filter(({ length }) => length > 0)
  const end = limit === null ? Infinity : skip + limit
  if (filled.length > 1) return new ListMerge(filled, compare).take(end).slice(skip)
  const rows: Row[] = []
  for (const list of filled) for (let at = skip; at < Math.min(end, list.length); at++) rows.push(list.at(at)!)
  return rows
}

/** Merges lists whose rows are in the order of `compare`, as far as it is asked to. */
export class ListMerge<Row> {
  readonly #heap: ListCursor<Row>[]
  readonly #before: (a: ListCursor<Row>, b: ListCursor<Row>) => boolean

  constructor(lists: readonly RowSequence<Row>[], compare: RowMergeOptions<Row>['compare']) {
    this.#heap = lists.filter(({ length }) => length > 0).map(list => ({ list, at: 0, row: list.at(0)! }))
    this.#before = (a, b) => compare(a.row, b.row) < 0
    makeHeap(this.#heap, this.#before)
  }

  /** Returns the next rows, fewer than `count` only at the end. */
  take(count: number): Row[] {
    const heap = this.#heap
    const rows: Row[] = []
    while (heap.length > 0 && rows.length < count) {
      const top = heap[0]!
      rows.push(top.row)
      const next = top.list.at(++top.at)
      if (next !== undefined) top.row = next
      else {
        const last = heap.pop()!
        if (heap.length > 0) heap[0] = last
      }
      sink(heap, 0, this.#before)
    }
    return rows
  }
}

/** Like `Promise.all`, but waits for all promises before it rejects. */
async function settleAll<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  const settled = await Promise.allSettled(promises)
  return settled.map(each => {
    if (each.status === 'rejected') throw each.reason
    return each.value
  })
}

/** Reads the next page. Returns false at the end of the source. */
async function fill<Row>(cursor: Cursor<Row>): Promise<boolean> {
  for (;;) {
    const next = await cursor.source.next()
    if (next.done) return false
    if (next.value.length === 0) continue
    cursor.page = next.value
    cursor.at = 0
    return true
  }
}
