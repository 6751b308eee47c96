import { ApiError, decodeViewGroup, encodeViewGroup, type IndexDefinition, ReplicaError } from '@sectional/core'
import type { JavaScriptParts } from './javascript-functions.ts'
import { viewReducer } from './view-reducers.ts'

/**
 * Returns the last step of the reductions of a view, for coordinators. It makes one group of the groups that the shards
 * have for one key. The state of that group is what the client receives; `decodeReduced` of `@sectional/core` reads it,
 * also for built-in reduce functions.
 *
 * @param definition with a reduce function
 * @returns a function that takes for each key the groups of the shards, as `Indexer.encodeGroup` encoded them, and that
 * returns one encoded group for each key. It rejects with ApiError: `invalid_value` when `_stats` cannot reduce a row,
 * `service_unavailable` when the sandbox cannot run the function now.
 */
export function viewReduceAgain(
  parts: JavaScriptParts, definition: IndexDefinition,
): (keys: readonly (readonly Uint8Array[])[], signal: AbortSignal) => Promise<readonly Uint8Array[]> {
  const reducer = viewReducer(parts, definition)
  return async (keys, signal) => {
    const groups = keys.map(values => values.map(decodeViewGroup))
    const states = await reducer.results(groups.map(list => list.map(({ state }) => state)), signal).catch(asApiError)
    return states.map((state, at) => encodeViewGroup(groups[at]![0]!.key, state))
  }
}

function asApiError(error: unknown): never {
  if (!(error instanceof ReplicaError)) throw error
  throw new ApiError('service_unavailable', error.message, { cause: error })
}
