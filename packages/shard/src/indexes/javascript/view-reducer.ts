import type { IndexedRow } from '../indexer.ts'

/** The reduce function of one definition over lists that are not empty. Each call returns one state for each list. */
export interface ViewReducer {
  reduce(lists: readonly (readonly IndexedRow[])[]): Promise<readonly Uint8Array[]>
  /** @param lists states of adjacent ranges of rows, or of several shards */
  rereduce(lists: readonly (readonly Uint8Array[])[], signal?: AbortSignal): Promise<readonly Uint8Array[]>
  /** Returns what clients receive for each list of states, as `decodeReduced` of `@sectional/core` reads it. */
  results(lists: readonly (readonly Uint8Array[])[], signal?: AbortSignal): Promise<readonly Uint8Array[]>
}
