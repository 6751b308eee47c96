import type { IndexDefinition, RowPlace } from '@sectional/core'
import type { IndexedRow, Indexer } from './indexer.ts'
import { type RowPart, rowPlace, type StoredRow } from './row-reader.ts'

const noValue = new Uint8Array(0)
/** A list of parts with this many is reduced to one part before more are read. */
const partsMax = 256

/** The reduce functions of one definition. Without a reduce function all values are empty. */
export class RowValues {
  readonly #indexer: Indexer
  readonly #definition: IndexDefinition

  constructor(indexer: Indexer, definition: IndexDefinition) {
    this.#indexer = indexer
    this.#definition = definition
  }

  /** Reduces lists of rows; the value of an empty list is empty. */
  ofRows(lists: readonly (readonly StoredRow[])[]): Promise<readonly Uint8Array[]> {
    return this.#each(lists, 1, found =>
      this.#indexer.reduce(this.#definition, found.map(rows => rows.map(indexedRow))))
  }

  /** Reduces lists of values; the value of a list with one value is that value. */
  ofValues(lists: readonly (readonly Uint8Array[])[]): Promise<readonly Uint8Array[]> {
    return this.#each(lists, 2, found => this.#indexer.rereduce(this.#definition, found))
  }

  /** Reduces ranges of rows, each of which has at least one row. */
  async ofRanges(ranges: readonly AsyncIterable<RowPart>[]): Promise<readonly Uint8Array[]> {
    const lists: RowPart[][] = []
    for (const range of ranges) {
      let parts: RowPart[] = []
      for await (const part of range) {
        parts.push(part)
        if (parts.length >= partsMax) parts = [{ kind: 'value', value: (await this.#ofParts([parts]))[0]! }]
      }
      lists.push(parts)
    }
    return this.#ofParts(lists)
  }

  async #ofParts(lists: readonly (readonly RowPart[])[]): Promise<readonly Uint8Array[]> {
    const rows = lists.flatMap(parts => parts.flatMap(part => part.kind === 'rows' ? [part.rows] : []))
    const reduced = (await this.ofRows(rows)).values()
    return this.ofValues(lists.map(parts =>
      parts.map(part => part.kind === 'rows' ? reduced.next().value! : part.value)))
  }

  /** @param lengthMin lists with fewer items are not passed to `reduce`; their value is their item, or empty */
  async #each<Item>(
    lists: readonly (readonly Item[])[], lengthMin: number,
    reduce: (lists: readonly (readonly Item[])[]) => Promise<readonly Uint8Array[]>,
  ): Promise<readonly Uint8Array[]> {
    if (this.#definition.reduce === null) return lists.map(() => noValue)
    const found = lists.filter(list => list.length >= lengthMin)
    const values = (found.length === 0 ? [] : await reduce(found)).values()
    return lists.map(list =>
      list.length >= lengthMin ? values.next().value! : list.length === 0 ? noValue : list[0] as Uint8Array)
  }
}

/** Returns a row of the index as reduce functions receive it. */
export function indexedRow(row: StoredRow): IndexedRow {
  return new LazyRow(row)
}

/** Reads the place of the row only when it is needed: many reduce functions need the values only. */
class LazyRow implements IndexedRow {
  readonly #row: StoredRow
  #place: RowPlace | undefined

  constructor(row: StoredRow) {
    this.#row = row
  }

  get key(): string { return this.#read().key }
  get id(): string { return this.#read().id }
  get number(): number { return this.#read().number }
  get value(): Uint8Array { return this.#row.value }

  #read(): RowPlace {
    return this.#place ??= rowPlace(this.#row)
  }
}
