import type { IndexRow, RowSequence } from '@sectional/core'
import { rowPlace } from './row-reader.ts'
import type { RunRows } from './run-rows.ts'

/** Successive rows of one run. */
interface Piece {
  readonly range: number
  readonly run: RunRows
  /** The index of the first row in the direction of the scan. */
  readonly first: number
  /** The number of rows of the pieces before. */
  readonly before: number
}

/** The rows of a scan. Each is decoded when it is read, because a merge of shards needs only some of them. */
export class ScannedRows implements RowSequence<IndexRow> {
  readonly #step: 1 | -1
  readonly #pieces: Piece[] = []
  #length = 0

  constructor(descending: boolean) {
    this.#step = descending ? -1 : 1
  }

  get length(): number { return this.#length }

  /**
   * Appends rows of a run.
   *
   * @param bounds the indexes of the first row and of the row behind the last one, in the order of the index
   * @param limit at most that many rows, the first ones in the direction of the scan
   */
  add(
    range: number, run: RunRows, { first, end }: { readonly first: number; readonly end: number }, limit: number,
  ): void {
    if (first >= end) return
    this.#pieces.push({ range, run, first: this.#step === 1 ? first : end - 1, before: this.#length })
    this.#length += Math.min(end - first, limit)
  }

  at(index: number): IndexRow | undefined {
    if (index >= this.#length) return undefined
    const { range, run, first, before } = this.#pieces.findLast(piece => piece.before <= index)!
    const row = run.at(first + this.#step * (index - before))
    const { key, id, number } = rowPlace(row)
    return { kind: 'row', range, key, id, number, value: row.value }
  }

  *[Symbol.iterator](): Generator<IndexRow> {
    for (let index = 0; index < this.#length; index++) yield this.at(index)!
  }
}
