import type { IndexDefinition } from '@sectional/core'
import type { MakeIndexes } from '@sectional/core/index-replica-suite'
import type { IndexedRow, Indexer } from '../../src/indexes/indexer.ts'

type PlainIndexer = Parameters<MakeIndexes>[1]

/** The functions of the contract's suite, behind the interface of the engine. */
export function suiteIndexer(plain: PlainIndexer): Indexer {
  return {
    versionOf: () => '1',
    map: async (definition, documents) => documents.map(document => {
      try {
        return { rows: plain.map(definition, document) }
      } catch (error) {
        return { error: String(error) }
      }
    }),
    groupOf: (key, level) => plain.groupOf(key, level),
    reduce: async (definition, lists) => lists.map(rows => plain.reduce(definition, rows)),
    rereduce: async (_definition, lists) => lists.map(rereduced),
    encodeGroup: (_definition: IndexDefinition, _row: IndexedRow, _level, value) => value,
  }
}

interface Folded { readonly sum: number; readonly keys: readonly string[] }

/** Combines the reductions of the suite, which show the rows and their order. */
function rereduced(values: readonly Uint8Array[]): Uint8Array {
  const parts = values.map(value => JSON.parse(Buffer.from(value).toString()) as Folded)
  const sum = parts.reduce((total, part) => total + part.sum, 0)
  return Buffer.from(JSON.stringify({ sum, keys: parts.flatMap(({ keys }) => keys) }))
}
