import type { ChangeRow, IndexDefinition, RowPlace } from '@sectional/core'

/** A row as a map function makes it. */
export interface MappedRow {
  /** The binary sort key of the emitted key, with one character for each byte. */
  readonly key: string
  /** The emitted key and value, encoded. */
  readonly value: Uint8Array
}

/** The rows of one document in the order of the calls of `emit`, or the error with which the map function failed. */
export type MappedDocument =
  { readonly rows: readonly MappedRow[]; readonly error?: undefined } | FailedDocument

export interface FailedDocument {
  readonly error: string
  /** Whether the function exceeded its limits of time, memory or size on this document. That may take some seconds. */
  readonly exceededLimits?: boolean
}

/** A row of an index, as reduce functions need it. */
export type IndexedRow = RowPlace & MappedRow

/**
 * The functions of definitions. Calls carry many documents or groups, since they cross to other processes. A call that
 * rejects ends the build or the read that made it; the next build continues where that one ended. The failure of a
 * function is no rejection: `map` returns it for the document, and `reduce` and `rereduce` return a value that
 * describes it.
 */
export interface Indexer {
  /**
   * Returns the version of the results of a definition's functions, such as that of the sort keys. Indexes that were
   * written with another version are built anew.
   */
  versionOf(definition: IndexDefinition): string
  /**
   * Maps documents that are not deleted, each with the body of its winner.
   *
   * @returns the results of the first documents in their order, at least one: of all, unless the rows need much memory,
   *   or the function exceeds its limits on many documents
   */
  map(
    definition: IndexDefinition, documents: readonly ChangeRow[], signal: AbortSignal,
  ): Promise<readonly MappedDocument[]>
  /**
   * Returns the prefix of a key that names its group at a level from 1. The keys that begin with it are those of the
   * group, so no key is the beginning of another one, either.
   *
   * @param key of a row of the definition's index
   */
  groupOf(key: string, level: number, definition: IndexDefinition): string
  /**
   * Reduces lists of rows. No list is empty; the rows of a list are in the order of the index.
   *
   * @returns a value for each list
   */
  reduce(definition: IndexDefinition, lists: readonly (readonly IndexedRow[])[]): Promise<readonly Uint8Array[]>
  /**
   * Reduces lists of reduced values, each of which has two values or more. The values of a list are those of adjacent
   * ranges of rows, in the order of the index.
   *
   * @returns a value for each list
   */
  rereduce(definition: IndexDefinition, lists: readonly (readonly Uint8Array[])[]): Promise<readonly Uint8Array[]>
  /**
   * Returns the value of a group as coordinators receive it: the group's key and the reduced value.
   *
   * @param row any row of the group
   * @param level `groupLevel` of the request
   */
  encodeGroup(definition: IndexDefinition, row: IndexedRow, level: number | 'exact', value: Uint8Array): Uint8Array
  /** Returns whether the value of a group (`encodeGroup`) describes a failure, which may not happen the next time. */
  isFailure?(definition: IndexDefinition, group: Uint8Array): boolean
}
