import {
  ApiError, encodeViewRow, fieldAt, scanOrder, selectorDocument, SortKeyEncoder,
  type FieldPath, type FoundDocument, type ScannedPlace,
} from '@sectional/core'
import type { Turns } from '@sectional/runtime'
import type { FindQuery, MatchPosition, MemorySort } from '../contracts/find-query.ts'
import { push, sink } from '../shard-calls/binary-heap.ts'
import type { SortMemory } from './sort-memory.ts'

/** The most bytes of documents that one sort in memory holds. */
export const sortBytesMax = 64 * 1024 * 1024
/** Estimated bytes of memory that a match takes besides its body and its key. */
const matchBytes = 400

export interface SortedQuery extends Pick<FindQuery, 'descending' | 'after' | 'skip' | 'limit'> {
  readonly sort: MemorySort
}

/**
 * Sorts matches. It reads all of them, and holds only those that can still belong to the answer: `skip` and `limit`
 * together. The position of each match in the result has the sort key of its fields and their values, so that a next
 * page continues behind it.
 *
 * @returns the first `skip` + `limit` matches, in one page
 * @throws ApiError `too_large` when the answer has more matches than `rowsMax`, or more bytes than `sortBytesMax`;
 * `service_unavailable` when the sorts of the node together hold too many bytes
 */
export async function* sortedMatches(
  matches: AsyncIterable<readonly FoundDocument[]>, query: SortedQuery, memory: SortMemory, turns: Turns,
): AsyncGenerator<readonly FoundDocument[]> {
  const { sort: { fields, rowsMax }, after, skip, limit } = query
  if (limit !== null && skip + limit > rowsMax) throw tooManyRows(skip + limit, rowsMax)
  const order = scanOrder(query.descending)
  const encoder = new SortKeyEncoder('root')
  const best = new BestMatches(query, memory)
  try {
    for await (const page of matches) {
      for (const match of page) {
        const place = placeOf(match, fields, encoder)
        if (place === undefined || (after !== undefined && order(place, after) <= 0)) continue
        best.add({ ...match, ...place })
      }
      await turns.pause()
    }
    const sorted = best.sorted()
    if (sorted.length > 0) yield sorted
  } finally {
    best.release()
  }
}

/** The matches that come first in an order, of all that were added. */
class BestMatches {
  readonly #order: (a: ScannedPlace, b: ScannedPlace) => number
  readonly #isLater: (a: FoundDocument, b: FoundDocument) => boolean
  readonly #rowsMax: number
  readonly #memory: SortMemory
  /** Number of matches to hold. Infinity: all of them, at most `#rowsMax`. */
  readonly #needed: number
  /** A heap, of which the first element is the last one in the order. Has at most `#needed` elements. */
  readonly #heap: FoundDocument[] = []
  /** The sum over `#heap`, which `#memory` counts. At most `sortBytesMax`. */
  #bytes = 0

  constructor({ descending, skip, limit, sort: { rowsMax } }: SortedQuery, memory: SortMemory) {
    this.#memory = memory
    this.#order = scanOrder(descending)
    this.#isLater = (a, b) => this.#order(a, b) > 0
    this.#rowsMax = rowsMax
    this.#needed = limit === null ? Infinity : skip + limit
  }

  add(match: FoundDocument): void {
    if (this.#heap.length < this.#needed) {
      if (this.#heap.length >= this.#rowsMax) throw tooManyRows(undefined, this.#rowsMax)
      this.#hold(bytesOf(match))
      push(this.#heap, match, this.#isLater)
    } else {
      const last = this.#heap[0]!
      if (this.#order(match, last) >= 0) return
      this.#hold(bytesOf(match) - bytesOf(last))
      this.#heap[0] = match
      sink(this.#heap, 0, this.#isLater)
    }
  }

  /** Gives the memory back. */
  release(): void {
    this.#hold(-this.#bytes)
  }

  #hold(bytes: number): void {
    if (this.#bytes + bytes > sortBytesMax) throw tooManyBytes()
    this.#memory.hold(bytes)
    this.#bytes += bytes
  }

  sorted(): readonly FoundDocument[] {
    return this.#heap.toSorted(this.#order)
  }
}

/** Returns undefined for a document that lacks one of the fields. */
function placeOf(
  { id, revision = '', body, attachments }: FoundDocument, fields: readonly FieldPath[], encoder: SortKeyEncoder,
): MatchPosition | undefined {
  const document = selectorDocument({ id, revision, body: body!, ...(attachments && { attachments }) })
  const values: unknown[] = []
  for (const path of fields) {
    const field = fieldAt(document, path)
    if (field.kind !== 'found') return undefined
    values.push(field.value)
  }
  return { range: 0, key: encoder.encode(values), id, number: 0, value: encodeViewRow(JSON.stringify(values), 'null') }
}

function bytesOf({ key, body }: FoundDocument): number {
  return matchBytes + key.length + (body?.length ?? 0)
}

const wayOut = 'create an index on the fields of the sort, or use a smaller skip and limit'

/** @param rows undefined: the query has no limit, and there are more matches than `rowsMax` */
function tooManyRows(rows: number | undefined, rowsMax: number): ApiError {
  const asked = rows === undefined ? 'The query has no limit and more matches' : `skip and limit are ${rows} together`
  return new ApiError('too_large',
    `${asked}; without an index, at most ${rowsMax} documents (mango/sort_rows_max) are sorted: ${wayOut}.`)
}

function tooManyBytes(): ApiError {
  return new ApiError('too_large',
    `The documents to sort have more than ${sortBytesMax} bytes, the limit of a sort without an index: ${wayOut}.`)
}
