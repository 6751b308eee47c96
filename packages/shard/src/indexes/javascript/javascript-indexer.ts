import {
  builtInReduce, type ChangeRow, decodeReduced, decodeViewGroup, type IndexDefinition, NamedMembers,
  rootCollationVersion, SortKeyEncoder,
} from '@sectional/core'
import { type Clock, type JsonText, type MapOutcome, readMembers, SandboxError, sleep } from '@sectional/runtime'
import type { IndexedRow, Indexer, MappedDocument } from '../indexer.ts'
import { encodeRowGroup, groupOfKey } from '../row-groups.ts'
import { type MapParts, sandboxFunction } from './javascript-functions.ts'
import { demandedAbort } from './map-abort.ts'
import { isMapped, mapArgument, mappedDocument } from './mapped-document.ts'
import { callInBatches } from './sandbox-batches.ts'
import type { ViewReducer } from './view-reducer.ts'
import { viewReducer } from './view-reducers.ts'

const noRows: MappedDocument = { rows: [] }

/** Is changed when equal functions give other rows, states or encodings of them. */
const encodingVersion = 1
/** Length of emitted keys and values from which on no further document is mapped by the same call. */
const mappedLengthMax = 4 * 1024 * 1024
/** How often and for how long a build repeats a call that the sandbox refuses because too many calls wait. */
const overloadRetryMs = 500
const overloadPatienceMs = 30_000

/**
 * Runs the functions of views in JavaScript. Map functions and custom reduce functions run in the sandbox, built-in
 * reduce functions in this process. Calls reject with ReplicaError: `compilation` when a source is not a function,
 * `exhausted` when a reduce function exceeds its limits too often, `aborted` when a map function demands it,
 * `unsupported` when this machine has no sandbox, and `overloaded` and `closed` as the sandbox reports them.
 */
export class JavaScriptIndexer implements Indexer {
  readonly #parts: MapParts
  readonly #root = new SortKeyEncoder('root')
  readonly #raw = new SortKeyEncoder('raw')
  readonly #readMembers = new WeakMap<IndexDefinition, NamedMembers | undefined>()

  constructor(parts: MapParts) {
    this.#parts = parts
  }

  versionOf(): string {
    return `javascript ${encodingVersion}, collation ${rootCollationVersion.collator}`
  }

  async map(
    definition: IndexDefinition, documents: readonly ChangeRow[], signal: AbortSignal,
  ): Promise<readonly MappedDocument[]> {
    const { sandbox, database, clock, turns: { background: turns } } = this.#parts
    const mapped = documents.filter(row => isMapped(definition, row))
    const texts = await turns.run(this.#mapArguments(definition, mapped))
    const called = sandboxFunction(database, definition, definition.map)
    let length = 0
    const map = async (batch: readonly JsonText[]): Promise<readonly MapOutcome[]> => {
      const made = await unlessOverloaded(() => sandbox.map(called, batch), clock, signal)
      for (const outcome of made) length += lengthOf(outcome)
      return made
    }
    const { outcomes } = await callInBatches(texts, map, signal, () => length >= mappedLengthMax)
    const results = await turns.run(this.#mappedDocuments(definition, mapped.slice(0, outcomes.length), outcomes))
    if (mapped.length === documents.length) return results
    const resultOf = new Map(results.map((result, at) => [mapped[at]!, result]))
    const next = mapped[results.length]
    const first = next === undefined ? documents : documents.slice(0, documents.indexOf(next))
    return first.map(row => resultOf.get(row) ?? noRows)
  }

  * #mapArguments(definition: IndexDefinition, documents: readonly ChangeRow[]): Generator<void, readonly JsonText[]> {
    const members = this.#membersReadBy(definition)
    const texts: JsonText[] = []
    for (const row of documents) {
      texts.push(mapArgument(definition, row, members && (yield* members.textOfOnly(row.body!))))
      yield
    }
    return texts
  }

  /** Returns the members of a body that the map function may read; undefined: all. */
  #membersReadBy(definition: IndexDefinition): NamedMembers | undefined {
    if (!this.#readMembers.has(definition)) {
      const names = readMembers(definition.map)?.filter(name => name !== '_id' && name !== '_rev')
      this.#readMembers.set(definition, names && new NamedMembers(names))
    }
    return this.#readMembers.get(definition)
  }

  /** Returns a generator for `Turns.run`. A promise for each document would cost more than a document with one row. */
  * #mappedDocuments(
    definition: IndexDefinition, documents: readonly ChangeRow[], outcomes: readonly (MapOutcome | SandboxError)[],
  ): Generator<void, readonly MappedDocument[]> {
    const encoder = this.#encoder(definition)
    const results: MappedDocument[] = []
    for (const [at, { id }] of documents.entries()) {
      const outcome = outcomes[at]!
      const abort = 'kind' in outcome && outcome.kind === 'thrown' ? demandedAbort(outcome) : undefined
      if (abort !== undefined) throw abort
      results.push(yield* mappedDocument(definition, id, outcome, encoder))
      yield
    }
    return results
  }

  groupOf(key: string, level: number, definition: IndexDefinition): string {
    return groupOfKey(this.#encoder(definition), key, level, definition)
  }

  reduce(
    definition: IndexDefinition, lists: readonly (readonly IndexedRow[])[],
  ): Promise<readonly Uint8Array[]> {
    return this.#reducer(definition).reduce(lists)
  }

  rereduce(
    definition: IndexDefinition, lists: readonly (readonly Uint8Array[])[],
  ): Promise<readonly Uint8Array[]> {
    return this.#reducer(definition).rereduce(lists)
  }

  encodeGroup(
    _definition: IndexDefinition, row: IndexedRow, level: number | 'exact', value: Uint8Array,
  ): Uint8Array {
    return encodeRowGroup(row, level, value)
  }

  /** Only custom reduce functions have states that `decodeReduced` reads. */
  isFailure({ reduce }: IndexDefinition, group: Uint8Array): boolean {
    const isCustom = reduce !== null && builtInReduce(reduce) === undefined
    return isCustom && decodeReduced(decodeViewGroup(group).state).failure !== undefined
  }

  #encoder({ options }: IndexDefinition): SortKeyEncoder {
    return options['collation'] === 'raw' ? this.#raw : this.#root
  }

  #reducer(definition: IndexDefinition): ViewReducer {
    return viewReducer(this.#parts, definition)
  }
}

/** Builds hold their documents anyway, and other functions than theirs may be the cause. */
async function unlessOverloaded<T>(call: () => Promise<T>, clock: Clock, signal: AbortSignal): Promise<T> {
  const until = clock.monotonic() + overloadPatienceMs
  for (;;) {
    try {
      return await call()
    } catch (error) {
      const isOverloaded = error instanceof SandboxError && error.code === 'overloaded'
      if (!isOverloaded || clock.monotonic() >= until) throw error
      await sleep(clock, overloadRetryMs, signal)
      if (signal.aborted) throw error
    }
  }
}

function lengthOf(outcome: MapOutcome): number {
  switch (outcome.kind) {
    case 'rows': return outcome.rows.reduce((sum, { key, value }) => sum + key.length + value.length, 0)
    case 'tooManyRows': return 0
    case 'thrown': return outcome.json.length
    case 'error': return outcome.message.length
  }
}
