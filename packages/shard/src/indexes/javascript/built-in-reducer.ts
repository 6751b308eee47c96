import { type BuiltInReduce, encodeReducedJson, type ReducedRow, type Reduction, viewRowValue } from '@sectional/core'
import type { Turns } from '@sectional/runtime'
import type { IndexedRow } from '../indexer.ts'
import type { ViewReducer } from './view-reducer.ts'

/** A built-in reduce function. Its states are those of `Reduction`; they do not depend on how rows were divided. */
export class BuiltInReducer implements ViewReducer {
  readonly #function: BuiltInReduce
  readonly #turns: Turns

  constructor(builtIn: BuiltInReduce, turns: Turns) {
    this.#function = builtIn
    this.#turns = turns
  }

  reduce(lists: readonly (readonly IndexedRow[])[]): Promise<readonly Uint8Array[]> {
    return this.#turns.map(lists, rows => {
      const reduction = this.#function.start()
      for (const row of rows) reduction.addRow(new ViewRow(row))
      return reduction.encode()
    })
  }

  rereduce(lists: readonly (readonly Uint8Array[])[]): Promise<readonly Uint8Array[]> {
    return this.#turns.map(lists, states => this.#combine(states).encode())
  }

  /** @throws ApiError `invalid_value` when `_stats` cannot reduce a row */
  results(lists: readonly (readonly Uint8Array[])[]): Promise<readonly Uint8Array[]> {
    return this.#turns.map(lists, states => encodeReducedJson(this.#combine(states).result()))
  }

  #combine(states: readonly Uint8Array[]): Reduction {
    const reduction = this.#function.start()
    for (const state of states) reduction.addState(state)
    return reduction
  }
}

/** A row of a view. Its members are read when they are needed: `_count` needs none. */
class ViewRow implements ReducedRow {
  readonly #row: IndexedRow

  constructor(row: IndexedRow) {
    this.#row = row
  }

  get key(): string { return this.#row.key }
  get id(): string { return this.#row.id }
  get number(): number { return this.#row.number }
  get value(): Uint8Array { return viewRowValue(this.#row.value) }
}
