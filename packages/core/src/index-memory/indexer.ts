import type { IndexDefinition } from '../contracts/index-replica.ts'
import type { ChangeRow } from '../contracts/shard-replica.ts'

/** A row as a map function makes it, in the order of the calls of `emit`. */
export interface MappedRow { readonly key: string; readonly value: Uint8Array }

/** The functions of definitions, as plain synchronous functions. */
export interface Indexer {
  /** Returns the rows of a live document's winner. Throws when the map function fails. */
  map(definition: IndexDefinition, document: ChangeRow): readonly MappedRow[]
  /** Returns the prefix of a key that names its group. Keys between two keys of a group belong to the group. */
  groupOf(key: string, level: number): string
  /** Reduces the rows of one group, which are in the order of the index. */
  reduce(definition: IndexDefinition, rows: readonly MappedRow[]): Uint8Array
}
