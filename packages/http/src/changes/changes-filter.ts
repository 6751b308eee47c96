/** Filters of changes feeds. `filter-choice` finds the filter of a request. */
import type { ChangeRow, FieldPath, Leaf } from '@sectional/core'

export interface ChangesFilter {
  /** Whether the filter needs the document's body. */
  readonly body: boolean
  /** Paths to which an included document is projected; null includes the whole document. */
  readonly fields: readonly FieldPath[] | null
  /**
   * Filters the next rows of a page. A filter that takes long filters few rows in one call, so that the feed can end
   * between two calls.
   *
   * @param at index of the first row to filter
   * @returns for one or more rows from `at` on, the leaves that pass. A row of which no leaf passes is left out
   */
  pass(rows: readonly ChangeRow[], at: number): PassedLeaves | Promise<PassedLeaves>
}

/** The leaves of each row that pass a filter. */
export type PassedLeaves = readonly (readonly Leaf[])[]

/** What a filter is asked about, and what it sees. */
export interface ShownRevisions {
  /** Whether the filter is applied to all leaves of a row, or only to the winner. */
  readonly allLeaves: boolean
  /** Whether documents have `_conflicts`. */
  readonly conflicts: boolean
}

/** Returns the leaves that a feed shows of a row: all of them, or only the winner. */
export function shownLeaves({ leaves }: ChangeRow, allLeaves: boolean): readonly Leaf[] {
  return allLeaves || leaves.length === 1 ? leaves : leaves.slice(0, 1)
}

/** Returns a filter that needs no documents: all shown leaves of a wanted row pass. */
export function rowFilter(isWanted: (row: ChangeRow) => boolean, allLeaves: boolean): ChangesFilter {
  return {
    body: false, fields: null,
    pass: (rows, at) => rows.slice(at).map(row => isWanted(row) ? shownLeaves(row, allLeaves) : []),
  }
}
