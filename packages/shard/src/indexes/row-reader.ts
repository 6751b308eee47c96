import type { PageLimits, RowPlace } from '@sectional/core'
import { compareUtf8 } from '@sectional/core'
import type { IterateOptions, StoreEntry, StoreSnapshot } from '@sectional/runtime'
import { IndexKeys, readPlace } from './index-keys.ts'
import type { PlaceRange } from './index-keys.ts'
import { decodeRow } from './index-records.ts'

/** A store, or a snapshot of it. */
export type IndexSource = Pick<StoreSnapshot, 'getSync' | 'iterate'>

export interface StoredRow {
  readonly place: string
  readonly value: Uint8Array
}

export function rowBytes({ place, value }: StoredRow): number {
  return place.length + value.length
}

export function rowPlace({ place }: StoredRow): RowPlace {
  return readPlace(place)
}

/** A part of a range of rows: rows that are to be reduced, or the value to which they were reduced. */
export type RowPart =
  | { readonly kind: 'rows'; readonly rows: readonly StoredRow[] }
  | { readonly kind: 'value'; readonly value: Uint8Array }

/** Reads of the rows of one state of an index. */
export interface RowReader {
  /** Counts the rows before a place. */
  countBefore(place: string): Promise<number>
  /** Returns the place of the row that has that many rows before it; `placesEnd` when there are not more rows. */
  placeAt(count: number): Promise<string>
  /** Returns the first row of a range; with `last`, the last one. Undefined when the range has no rows. */
  endRow(range: PlaceRange, last: boolean): Promise<StoredRow | undefined>
  /** Returns the parts of which a range consists, in the order of the rows. */
  parts(range: PlaceRange): AsyncGenerator<RowPart>
}

/** The rows that are read at once. */
export const rowPages: PageLimits = { pageRows: 128, pageBytes: 128 * 1024 }

/** Reads a range of rows in pages. A range that ends before it begins is empty. */
export async function* readRows(
  source: IndexSource, keys: IndexKeys, range: PlaceRange, options: IterateOptions = {},
  { pageRows, pageBytes } = rowPages,
): AsyncGenerator<readonly StoredRow[]> {
  if (compareUtf8(range.from, range.to) >= 0) return
  const iterator = source.iterate(keys.rows(range), { ...options, text: true, pageBytes })
  const count = Math.min(pageRows, options.limit ?? pageRows)
  const decode = options.values === false
    ? ([key, value]: StoreEntry): StoredRow => ({ place: IndexKeys.text(key), value })
    : ([key, record]: StoreEntry): StoredRow => {
      const place = IndexKeys.text(key)
      return { place, value: decodeRow(place, record) }
    }
  try {
    for (let page = await iterator.next(count); page.length > 0; page = await iterator.next(count)) {
      yield page.map(decode)
    }
  } finally {
    await iterator.close()
  }
}
