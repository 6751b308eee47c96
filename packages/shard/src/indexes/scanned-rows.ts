import type { IndexRow, RowSequence } from '@sectional/core'
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
   * @param first the index of the first row in the order of the index
   * @param end the index of the row behind the last one, above `first`
   * @param limit at most that many rows, the first ones in the direction of the scan
   */
  add(range: number, run: RunRows, first: number, end: number, limit: number): void {
    this.#pieces.push({ range, run, first: this.#step === 1 ? first : end - 1, before: this.#length })
    this.#length += Math.min(end - first, limit)
  }

  at(index: number): IndexRow | undefined {
    if (index >= this.#length) return undefined
    const { range, run, first, before } = this.#pieceOf(index)
    const at = first + this.#step * (index - before)
    const { key, id, number } = run.rowPlaceAt(at)
    return { kind: 'row', range, key, id, number, value: run.valueAt(at) }
  }

  /** Returns the last piece that begins at or before a row. */
  #pieceOf(index: number): Piece {
    let at = this.#pieces.length - 1
    while (this.#pieces[at]!.before > index) at--
    return this.#pieces[at]!
  }

  *[Symbol.iterator](): Generator<IndexRow> {
    for (let index = 0; index < this.#length; index++) yield this.at(index)!
  }
}
