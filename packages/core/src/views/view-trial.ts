/** A trial runs the functions of a view over a few documents. It stores nothing and builds no index. */
import type { ReducedJson } from './view-row-codec.ts'

/** Bounds of one trial. */
export const viewTrialLimits = {
  /** Number of documents. */
  documents: 1000,
  /** Bytes of the documents, and length of the emitted keys and values; the last document may exceed them. */
  bytes: 8 * 1024 * 1024,
  /** Milliseconds after which no further document is mapped. */
  mapMs: 10_000,
  /** Number of failed documents, and of logged lines, that are described. */
  described: 100,
} as const

/** An emitted row; key and value are JSON texts. */
export interface TrialRow { readonly id: string; readonly key: string; readonly value: string }

/** Why the map function failed for a document. Line and column count from 1; null: unknown. */
export interface TrialFailure {
  readonly id: string
  readonly error: string
  readonly line: number | null
  readonly column: number | null
  /** The module of `views.lib` in which the error occurred; null for the function itself. */
  readonly module: string | null
}

export interface ViewTrial {
  /** The number of documents with which the map function was called. */
  readonly mapped: number
  /** In the order of the view. */
  readonly rows: readonly TrialRow[]
  /** The number of documents for which the map function failed, and the first ones of them. */
  readonly failedCount: number
  readonly failures: readonly TrialFailure[]
  /** The first lines that the map function logged. */
  readonly logged: readonly { readonly id: string; readonly line: string }[]
  /** The limit at which the trial left out documents; null when it mapped all of the sample. */
  readonly stoppedBy: 'time' | 'bytes' | null
  /**
   * The reduction of all rows: `direct` by one call, `rereduced` of the reductions of both halves. Absent without rows
   * or without a reduce function.
   */
  readonly reduced?: { readonly direct: ReducedJson; readonly rereduced: ReducedJson }
  readonly mapMs: number
  readonly reduceMs: number
}
