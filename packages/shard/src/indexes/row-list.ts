import type { IterateOptions } from '@sectional/runtime'
import { firstPlace, type IndexKeys, type PlaceRange, placesEnd } from './index-keys.ts'
import { type IndexSource, readRows, type RowPart, type RowReader, type StoredRow } from './row-reader.ts'

/**
 * Reads rows that have no summaries, because the first build of the index is not finished. The cost of each read is
 * that of the rows in its range.
 */
export class RowList implements RowReader {
  readonly #source: IndexSource
  readonly #keys: IndexKeys
  readonly #check: () => void

  /** @param check called for each page of rows; an error that it throws ends the read */
  constructor(source: IndexSource, keys: IndexKeys, check: () => void) {
    this.#source = source
    this.#keys = keys
    this.#check = check
  }

  async countBefore(place: string): Promise<number> {
    let count = 0
    for await (const page of this.#places({ from: firstPlace, to: place })) count += page.length
    return count
  }

  async placeAt(count: number): Promise<string> {
    let before = 0
    for await (const page of this.#places({ from: firstPlace, to: placesEnd })) {
      if (count < before + page.length) return page[count - before]!.place
      before += page.length
    }
    return placesEnd
  }

  async endRow(range: PlaceRange, last: boolean): Promise<StoredRow | undefined> {
    for await (const [row] of readRows(this.#source, this.#keys, range, { reverse: last, limit: 1 })) return row
    return undefined
  }

  async* parts(range: PlaceRange): AsyncGenerator<RowPart> {
    for await (const rows of this.#read(range)) yield { kind: 'rows', rows }
  }

  #places(range: PlaceRange): AsyncGenerator<readonly StoredRow[]> {
    return this.#read(range, { values: false })
  }

  async* #read(range: PlaceRange, options?: IterateOptions): AsyncGenerator<readonly StoredRow[]> {
    for await (const page of readRows(this.#source, this.#keys, range, options)) {
      this.#check()
      yield page
    }
  }
}
