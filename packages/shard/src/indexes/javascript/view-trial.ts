import {
  ApiError, compareRows, decodeReduced, decodeViewRow, type ChangeRow, type IndexDefinition, ReplicaError,
  type ReducedJson, SortKeyEncoder, type TrialFailure, type ViewTrial, viewTrialLimits,
} from '@sectional/core'
import { failureText, type MapOutcome, SandboxError, unknownPosition } from '@sectional/runtime'
import type { IndexedRow } from '../indexer.ts'
import { type MapParts, sandboxFunction } from './javascript-functions.ts'
import { isMapped, mapArgument, mappedDocument } from './mapped-document.ts'
import { itemFailures } from './sandbox-batches.ts'
import type { ViewReducer } from './view-reducer.ts'
import { viewReducer } from './view-reducers.ts'

/**
 * Calls the map function with each document and reduces the rows, as a build and a query would.
 *
 * @param documents not deleted, each with the body of its winner
 * @throws ApiError `compilation_error`, `not_implemented` when this machine runs no functions, `service_unavailable`
 * when too many calls wait; the reason of `signal` when it is aborted
 */
export async function tryView(
  parts: MapParts, definition: IndexDefinition, documents: readonly ChangeRow[], signal: AbortSignal,
): Promise<ViewTrial> {
  const trial = new MapTrial(parts, definition)
  const start = parts.clock.monotonic()
  const isOver = (): boolean => parts.clock.monotonic() - start >= viewTrialLimits.mapMs
  for (const row of documents) {
    if (!isMapped(definition, row)) continue
    signal.throwIfAborted()
    if (trial.isFull) trial.stoppedBy = 'bytes'
    else if (isOver()) trial.stoppedBy = 'time'
    if (trial.stoppedBy !== null) break
    await trial.map(row)
  }
  const rows = trial.rows.sort(compareRows)
  const mapped = parts.clock.monotonic()
  const { failedCount, failures, logged, stoppedBy } = trial
  const reduced = rows.length === 0 || definition.reduce === null
    ? {} : { reduced: await reduceTrial(viewReducer(parts, definition), rows, signal) }
  return {
    mapped: trial.mapped, rows: rows.map(({ id, value }) => ({ id, ...decodeViewRow(value) })), failedCount, failures,
    logged, stoppedBy, ...reduced, mapMs: mapped - start, reduceMs: parts.clock.monotonic() - mapped,
  }
}

/** The calls of the map function. Each has one document, so that logged lines and exceeded limits belong to it. */
class MapTrial {
  readonly #parts: MapParts
  readonly #definition: IndexDefinition
  readonly #encoder: SortKeyEncoder
  readonly rows: IndexedRow[] = []
  readonly failures: TrialFailure[] = []
  readonly logged: { readonly id: string; readonly line: string }[] = []
  failedCount = 0
  mapped = 0
  stoppedBy: ViewTrial['stoppedBy'] = null
  #bytes = 0

  constructor(parts: MapParts, definition: IndexDefinition) {
    this.#parts = parts
    this.#definition = definition
    this.#encoder = new SortKeyEncoder(definition.options['collation'] === 'raw' ? 'raw' : 'root')
  }

  get isFull(): boolean { return this.#bytes >= viewTrialLimits.bytes }

  async map(row: ChangeRow): Promise<void> {
    const { turns } = this.#parts
    const { id } = row
    const outcome = await this.#call(row)
    this.mapped++
    if (outcome instanceof SandboxError) return this.#fail({ id, error: outcome.message, ...unknownPosition })
    if (outcome.kind === 'error') {
      const { message: error, line, column, module } = outcome
      return this.#fail({ id, error, line, column, module })
    }
    const rows = mappedDocument(this.#definition, id, outcome, this.#encoder)
    const made = await turns.run(rows)
    if (made.error !== undefined) return this.#fail({ id, error: made.error, ...unknownPosition })
    for (const [number, each] of made.rows.entries()) {
      this.rows.push({ id, number, ...each })
      this.#bytes += each.key.length + each.value.length
    }
  }

  /** Returns the error when the document may be its cause. */
  async #call(row: ChangeRow): Promise<MapOutcome | SandboxError> {
    const { sandbox, database } = this.#parts
    const called = sandboxFunction(database, this.#definition, this.#definition.map)
    const log = (line: string): void => {
      if (this.logged.length < viewTrialLimits.described) this.logged.push({ id: row.id, line })
    }
    try {
      const [outcome] = await sandbox.map(called, [mapArgument(this.#definition, row)], log)
      return outcome!
    } catch (error) {
      if (error instanceof SandboxError && itemFailures.has(error.code)) return error
      throw error instanceof SandboxError ? refusal(error) : error
    }
  }

  #fail(failure: TrialFailure): void {
    this.failedCount++
    if (this.failures.length < viewTrialLimits.described) this.failures.push(failure)
  }
}

async function reduceTrial(
  reducer: ViewReducer, rows: readonly IndexedRow[], signal: AbortSignal,
): Promise<NonNullable<ViewTrial['reduced']>> {
  const middle = Math.ceil(rows.length / 2)
  const halves = [rows.slice(0, middle), rows.slice(middle)].filter(({ length }) => length > 0)
  return {
    direct: await reduction(reducer, [rows], signal), rereduced: await reduction(reducer, halves, signal),
  }
}

/** Returns the reduction of the reductions of some lists. */
async function reduction(
  reducer: ViewReducer, lists: readonly (readonly IndexedRow[])[], signal: AbortSignal,
): Promise<ReducedJson> {
  try {
    const [state] = await reducer.results([await reducer.reduce(lists)], signal)
    return decodeReduced(state!)
  } catch (error) {
    if (error instanceof ApiError) return { failure: { error: error.error, reason: error.reason } }
    if (error instanceof ReplicaError && error.code !== 'cancelled') {
      return { failure: { error: error.code, reason: error.message } }
    }
    throw error
  }
}

function refusal(error: SandboxError): ApiError {
  switch (error.code) {
    case 'compilation':
      return new ApiError('compilation_error', failureText(error.message, error.position), { cause: error })
    case 'unsupported': return new ApiError('not_implemented', error.message, { cause: error })
    default: return new ApiError('service_unavailable', error.message, { cause: error })
  }
}
