/** Rows for the tests of reduce functions, and reductions of them in several ways. */
import { builtInReduce, SortKeyEncoder, type ReducedRow, type Reduction } from '@sectional/core'

const keys = new SortKeyEncoder()

/** A row with a value as JSON text. */
export function rowOf(json: string, key: unknown = null, id = '', number = 0): ReducedRow {
  return { key: keys.encode(key), id, number, value: Buffer.from(json) }
}

export function rowsOf(values: readonly unknown[]): ReducedRow[] {
  return values.map((value, at) => rowOf(JSON.stringify(value), at))
}

export function reductionOf(name: string, rows: readonly ReducedRow[]): Reduction {
  const reduction = builtInReduce(name)!.start()
  for (const row of rows) reduction.addRow(row)
  return reduction
}

/** Returns the result over the rows as a JavaScript value. */
export function reduced(name: string, rows: readonly ReducedRow[]): unknown {
  return JSON.parse(reductionOf(name, rows).result())
}

export function combined(name: string, states: readonly Uint8Array[]): Reduction {
  const reduction = builtInReduce(name)!.start()
  for (const state of states) reduction.addState(state)
  return reduction
}
