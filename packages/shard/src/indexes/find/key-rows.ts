import { placeText } from '../index-keys.ts'
import { SoughtPlace } from '../place-search.ts'
import type { RowTree, Run } from '../row-tree.ts'
import type { RunRows } from '../run-rows.ts'

/**
 * The documents that have a row with one key in an index of the kind `query`. Such rows are in the order of their
 * documents' ids, so that ids which are asked for in this order read each run of rows once. Few rows are decoded.
 */
export class KeyRows {
  readonly #tree: RowTree
  readonly #key: string
  /** The run that was read last, and its rows. */
  #run: Run | undefined
  #rows: RunRows | undefined
  readonly #onFailure: (error: unknown) => void
  /** Whether the index could not be read. Then nothing is known about any document. */
  #failed = false

  /** @param onFailure is called with the error when the index cannot be read, once */
  constructor(tree: RowTree, key: string, onFailure: (error: unknown) => void) {
    this.#tree = tree
    this.#key = key
    this.#onFailure = onFailure
  }

  /**
   * Returns whether a document may have such a row; a promise when rows must be read from the store for that. It is
   * true for every document when the index cannot be read.
   */
  has(id: string): boolean | Promise<boolean> {
    if (this.#failed) return true
    try {
      // An index of this kind has at most one row for each document, whose number is 0.
      const place = new SoughtPlace(placeText({ key: this.#key, id, number: 0 }))
      if (this.#run !== undefined && place.isAtOrBehind(this.#run.from) && place.isBefore(this.#run.to)) {
        return hasRow(this.#rows!, place)
      }
      const run = this.#tree.runOf(place)
      const rows = this.#tree.rowsInMemory(run)
      return rows === undefined ? this.#read(run, place) : hasRow(this.#enter(run, rows), place)
    } catch (error) {
      return this.#fail(error)
    }
  }

  async #read(run: Run, place: SoughtPlace): Promise<boolean> {
    try {
      return hasRow(this.#enter(run, await this.#tree.rows(run)), place)
    } catch (error) {
      return this.#fail(error)
    }
  }

  #enter(run: Run, rows: RunRows): RunRows {
    this.#run = run
    this.#rows = rows
    return rows
  }

  #fail(error: unknown): true {
    this.#failed = true
    this.#onFailure(error)
    return true
  }
}

function hasRow(rows: RunRows, place: SoughtPlace): boolean {
  const at = rows.indexOf(place)
  return at < rows.length && rows.placeAt(at) === place.text
}
