import {
  asBuffer, decodeReduced, decodeViewRow, encodeReducedJson, encodeReduceFailure, type IndexDefinition,
} from '@sectional/core'
import { type CallOutcome, failureText, SandboxError, type SandboxFunction } from '@sectional/runtime'
import type { IndexedRow } from '../indexer.ts'
import { type JavaScriptParts, sandboxFunction } from './javascript-functions.ts'
import { checkEmitted } from './long-json.ts'
import { defaultReduceLimit, reduceOverflow } from './reduce-limit.ts'
import { callInBatches, inBatches } from './sandbox-batches.ts'
import type { ViewReducer } from './view-reducer.ts'

/** UTF-16 units of the reason of a failure. */
const reasonLengthMax = 5000

/**
 * A reduce function in JavaScript. Its states are its results as JSON texts. A failure is a state, too: the reduction
 * of a list with such a state has the first failure of the list as its state. Lists with many bytes are reduced in
 * pieces.
 */
export class CustomReducer implements ViewReducer {
  readonly #parts: JavaScriptParts
  readonly #function: SandboxFunction

  constructor(parts: JavaScriptParts, definition: IndexDefinition) {
    this.#parts = parts
    this.#function = sandboxFunction(parts.database, definition, definition.reduce!)
  }

  async reduce(lists: readonly (readonly IndexedRow[])[]): Promise<readonly Uint8Array[]> {
    const pieces = lists.map(rows => inBatches(rows, ({ value }) => value.length))
    const argumentLists = await this.#parts.turns.map(pieces.flat(), reduceArguments)
    const states = (await this.#call(argumentLists)).values()
    return this.rereduce(pieces.map(({ length }) => Array.from({ length }, () => states.next().value!)))
  }

  async rereduce(
    lists: readonly (readonly Uint8Array[])[], signal?: AbortSignal,
  ): Promise<readonly Uint8Array[]> {
    let left = lists.map(firstFailureOrAll)
    while (left.some(({ length }) => length > 1)) {
      const pieces = left.map(states => inPairsAtLeast(inBatches(states, ({ length }) => length)))
      const argumentLists = pieces.flat().filter(({ length }) => length > 1).map(rereduceArguments)
      const reduced = (await this.#call(argumentLists, signal)).values()
      left = pieces.map(list =>
        firstFailureOrAll(list.map(piece => piece.length > 1 ? reduced.next().value! : piece[0]!)))
    }
    return left.map(([state]) => state!)
  }

  results(lists: readonly (readonly Uint8Array[])[], signal?: AbortSignal): Promise<readonly Uint8Array[]> {
    return this.rereduce(lists, signal)
  }

  async #call(argumentLists: readonly string[], signal?: AbortSignal): Promise<readonly Uint8Array[]> {
    const { sandbox, turns } = this.#parts
    const { outcomes, exhausted } =
      await callInBatches(argumentLists, batch => sandbox.call(this.#function, batch), signal)
    if (exhausted !== undefined) throw exhausted
    return turns.run(this.#statesOf(outcomes, argumentLists))
  }

  * #statesOf(
    outcomes: readonly (CallOutcome | SandboxError)[], argumentLists: readonly string[],
  ): Generator<void, readonly Uint8Array[]> {
    const states: Uint8Array[] = []
    for (const [at, outcome] of outcomes.entries()) {
      states.push(yield* this.#stateOf(outcome, argumentLists[at]!.length))
      yield
    }
    return states
  }

  /** Returns the state that an outcome makes. @param inputLength UTF-16 units of the arguments' JSON */
  * #stateOf(outcome: CallOutcome | SandboxError, inputLength: number): Generator<void, Uint8Array> {
    if (outcome instanceof SandboxError) return failed(outcome.code, outcome.message)
    if (outcome.kind === 'thrown') return this.#raised(`The reduce function threw ${outcome.json}`)
    if (outcome.kind === 'error') return this.#raised(failureText(outcome.message, outcome))
    const { json } = outcome
    const { reduceLimit = defaultReduceLimit, onReduceOverflow } = this.#parts
    const overflow = reduceOverflow(reduceLimit, inputLength, json.length)
    if (overflow !== undefined) {
      if (reduceLimit.reduceLimit === 'true') return failed('reduce_overflow_error', overflow)
      onReduceOverflow?.(this.#function.designDocument, overflow)
    }
    return (yield* isJson(json)) ? encodeReducedJson(json) : this.#raised('The reduce function returned no JSON')
  }

  #raised(reason: string): Uint8Array {
    this.#parts.onReduceFailure?.(this.#function.designDocument, reason.slice(0, reasonLengthMax))
    return failed('reduce_error', reason)
  }
}

function reduceArguments(rows: readonly IndexedRow[]): string {
  const decoded = rows.map(({ id, value }) => ({ id, ...decodeViewRow(value) }))
  const keys = decoded.map(({ id, key }) => `[${key},${JSON.stringify(id)}]`)
  return `[[${keys.join()}],[${decoded.map(({ value }) => value).join()}],false]`
}

function rereduceArguments(states: readonly Uint8Array[]): string {
  return `[null,[${states.map(state => asBuffer(state).toString()).join()}],true]`
}

function firstFailureOrAll(states: readonly Uint8Array[]): readonly Uint8Array[] {
  const failure = states.find(state => decodeReduced(state).failure !== undefined)
  return failure === undefined ? states : [failure]
}

/** Joins runs of one state with the run behind them, so that each call makes fewer states of several. */
function inPairsAtLeast(pieces: readonly (readonly Uint8Array[])[]): readonly (readonly Uint8Array[])[] {
  const joined: Uint8Array[][] = []
  for (const piece of pieces) {
    if (joined.at(-1)?.length === 1) joined.at(-1)!.push(...piece)
    else joined.push([...piece])
  }
  return joined
}

function failed(error: string, reason: string): Uint8Array {
  return encodeReduceFailure({ error, reason: reason.slice(0, reasonLengthMax) })
}

/** A hostile function can change the text of its result. */
function* isJson(text: string): Generator<void, boolean> {
  try {
    yield* checkEmitted(text)
    return true
  } catch {
    return false
  }
}
