import {
  builtInReduce, type ChangeRow, type IndexDefinition, PatternBudget, queryRowMaker, ReplicaError, rootCollationVersion,
  SelectorError, SortKeyEncoder, type StoredDocument,
} from '@sectional/core'
import type { Clock, Machine, Turns } from '@sectional/runtime'
import type { IndexedRow, Indexer, MappedDocument } from '../indexer.ts'
import { BuiltInReducer } from '../javascript/built-in-reducer.ts'
import { encodeRowGroup, groupOfKey } from '../row-groups.ts'

export interface QueryIndexerParts {
  readonly turns: Turns
  readonly clock: Clock
  readonly machine: Pick<Machine, 'testInTime'>
}

const noRows: MappedDocument = { rows: [] }
/** Is changed when equal definitions give other rows or encodings of them. */
const encodingVersion = 2

/**
 * Makes the rows of Mango's JSON indexes (docs/decisions/0019-mango.md). It needs no sandbox. `map` rejects with
 * ReplicaError `compilation` for a definition that is not valid. The patterns of a partial filter may exceed their
 * limit of time on a document.
 */
export class QueryIndexer implements Indexer {
  readonly #parts: QueryIndexerParts
  readonly #encoder = new SortKeyEncoder('root')
  readonly #count: BuiltInReducer

  constructor(parts: QueryIndexerParts) {
    this.#parts = parts
    this.#count = new BuiltInReducer(builtInReduce('_count')!, parts.turns)
  }

  versionOf(): string {
    return `query ${encodingVersion}, collation ${rootCollationVersion.collator}`
  }

  async map(definition: IndexDefinition, documents: readonly ChangeRow[]): Promise<readonly MappedDocument[]> {
    const { turns: { background: turns }, clock, machine } = this.#parts
    const budget = new PatternBudget(clock, machine)
    const rowOf = rowMaker(definition, budget)
    const mapped: MappedDocument[] = []
    await turns.map(documents, document => {
      // The next call has a budget of its own.
      if (!budget.hasRoom) return
      budget.beginDocument()
      try {
        const row = rowOf(stored(document))
        mapped.push(row === undefined ? noRows : { rows: [row] })
      } catch (error) {
        mapped.push({ error: failure(error), exceededLimits: error instanceof SelectorError })
      }
    })
    return mapped
  }

  groupOf(key: string, level: number, definition: IndexDefinition): string {
    return groupOfKey(this.#encoder, key, level, definition)
  }

  reduce(
    _definition: IndexDefinition, lists: readonly (readonly IndexedRow[])[],
  ): Promise<readonly Uint8Array[]> {
    return this.#count.reduce(lists)
  }

  rereduce(
    _definition: IndexDefinition, lists: readonly (readonly Uint8Array[])[],
  ): Promise<readonly Uint8Array[]> {
    return this.#count.rereduce(lists)
  }

  encodeGroup(
    _definition: IndexDefinition, row: IndexedRow, level: number | 'exact', value: Uint8Array,
  ): Uint8Array {
    return encodeRowGroup(row, level, value)
  }
}

/** @throws ReplicaError `compilation` for fields or a filter that are not valid, as somebody may write them by hand */
function rowMaker(definition: IndexDefinition, budget: PatternBudget): ReturnType<typeof queryRowMaker> {
  try {
    return queryRowMaker(definition, budget.testInTime)
  } catch (error) {
    throw new ReplicaError('compilation', `the index is not valid: ${(error as Error).message}`, { cause: error })
  }
}

function stored({ id, leaves, body, attachments }: ChangeRow): StoredDocument {
  const { revision } = leaves[0]!
  const document = { id, revision, body: body!, leaves }
  return attachments === undefined ? document : { ...document, attachments }
}

function failure(error: unknown): string {
  return error instanceof SelectorError ? error.message : `The row cannot be indexed: ${(error as Error).message}`
}
