/**
 * The contract of built-in reduce functions. A reduction is computed from rows and from the states of other reductions,
 * which are bytes: an index stores them beside the rows that they cover, and nodes send them to coordinators.
 *
 * A state does not depend on how its rows were divided into runs, nor on the order in which rows and states were added:
 * the result over a range of rows is the same however the range was composed. There is one exception: of several rows
 * that cannot be reduced, the failure of the one that was added first is reported.
 */
import type { RowPlace } from '../contracts/index-replica.ts'

/** A row of an index as a reduce function reads it. */
export interface ReducedRow extends RowPlace {
  /** JSON text of the emitted value, in UTF-8. */
  readonly value: Uint8Array
}

/** A computation over at least one row. */
export interface Reduction {
  /** Rows that cannot be reduced do not throw; `result` reports the failure. */
  addRow(row: ReducedRow): void
  /**
   * Adds the rows of another reduction by the same function.
   *
   * @param state as `encode` returned it
   * @throws RangeError when the bytes are not a state
   */
  addState(state: Uint8Array): void
  /** Returns the state. Its size has a limit that does not depend on the number of rows. */
  encode(): Uint8Array
  /**
   * Returns the JSON text that the client receives as the value of the reduced row. Failures of `_sum`, `_first`,
   * `_last`, `_top_N` and `_bottom_N` are such values, too: objects with the members `error` (`builtin_reduce_error`),
   * `reason` and `caused_by`.
   *
   * @throws ApiError `invalid_value` when `_stats` cannot reduce a row
   */
  result(): string
}

export interface BuiltInReduce {
  /** The name without what follows the part that has a meaning, for instance `_sum` or `_top_5`. */
  readonly name: string
  /** Begins a reduction without rows. Neither `encode` nor `result` may be called before something was added. */
  start(): Reduction
}

/** Longest value in a row that `_sum` and `_stats` parse, in bytes of JSON. A longer one cannot be reduced. */
export const reducedValueBytesMax = 64 * 1024
