/** What the planner of queries is given, and what it answers. */
import type { JsonObject } from '../json/json-text.ts'
import type { Selector } from '../selectors/selector.ts'

/** An index of type `json` that a design document defines. */
export interface JsonIndex {
  /** Id of the design document, with `_design/`. */
  readonly ddoc: string
  readonly name: string
  /** The columns of the index, at least one. */
  readonly fields: readonly { readonly name: string }[]
  /** The selector that the documents of a partial index pass. */
  readonly partialFilter?: JsonObject
  /** Whether the rows are ordered by partition, so that only queries of one partition can use the index. */
  readonly partitioned: boolean
}

/** The index that the member `use_index` of a query names. */
export interface UseIndex {
  /** With `_design/`. */
  readonly ddoc: string
  /** Absent: any index of the design document. */
  readonly name?: string
}

/** The parts of a query on which its plan depends. */
export interface PlannedQuery {
  readonly selector: Selector
  /** In the order of the request, all in one direction; empty: any order. */
  readonly sort: readonly { readonly name: string; readonly direction: 'asc' | 'desc' }[]
  /** The fields to which documents are reduced; null: whole documents. */
  readonly fields: readonly string[] | null
  readonly useIndex: UseIndex | null
  /** Whether another index, or all documents, may be read when `useIndex` cannot be used, or is null. */
  readonly allowFallback: boolean
  /** Whether the selector sees `_conflicts`, and the answer has them. */
  readonly conflicts: boolean
  /** The partition whose documents are asked for; null: those of the whole database. */
  readonly partition: string | null
  /** Whether the database is partitioned. */
  readonly partitioned: boolean
}

/**
 * Why an index is not used. All names but `more_rows` are those of CouchDB
 * (https://docs.couchdb.org/en/stable/api/database/find.html#db-explain):
 * - `is_partial`: the index is partial, and the query does not name it;
 * - `scope_mismatch`: the query is about one partition and the index is global, or the reverse;
 * - `field_mismatch`: the selector matches documents that have no row in the index;
 * - `sort_order_mismatch`: the index has another order than the one asked for;
 * - `excluded_by_user`: the query names another index;
 * - `unfavored_type`: an index is preferred to reading all documents;
 * - `less_overlap`: more of the selector's fields are left outside of the prefix of the index;
 * - `more_rows`: the range of the index has more rows than that of the chosen one;
 * - `too_many_fields`: the index has more columns than the chosen one;
 * - `alphabetically_comes_after`: the chosen index has a lesser name.
 */
export type RejectionReason =
  | 'is_partial' | 'scope_mismatch' | 'field_mismatch' | 'sort_order_mismatch' | 'excluded_by_user'
  | 'unfavored_type' | 'less_overlap' | 'more_rows' | 'too_many_fields' | 'alphabetically_comes_after'

/** An index that was considered and not chosen. */
export interface RejectedIndex<Index extends JsonIndex> {
  /** null: the list of all documents. */
  readonly index: Index | null
  /** Whether the index could serve the query. */
  readonly usable: boolean
  readonly reason: RejectionReason
  /** Position in the order of preference; the chosen index has 0. All unusable ones have the same. */
  readonly ranking: number
  /** Whether the rows alone would answer the query. null for the list of all documents. */
  readonly covering: boolean | null
}

/** The request for an index that would serve a query, as the body of `POST /{db}/_index`. */
export interface IndexSuggestion {
  readonly index: { readonly fields: readonly string[] }
  readonly type: 'json'
  /** Present only for a query of the whole of a partitioned database. */
  readonly partitioned?: false
}

export interface QueryPlan<Index extends JsonIndex> {
  readonly kind: 'plan'
  /** null: all documents are read, in the order of their ids. */
  readonly index: Index | null
  readonly descending: boolean
  /** Whether the rows of the index have all that the query needs, so that no document is read. */
  readonly covering: boolean
  /** What the query named in `use_index`, when that could not be used. Clients are warned. */
  readonly unused: UseIndex | null
  /** Best first; the list of all documents is the last one. */
  readonly rejected: readonly RejectedIndex<Index>[]
  /** An index that would be better; null when an index is used or none would help. */
  readonly suggestion: IndexSuggestion | null
}

/** The query cannot be served. Clients receive the error with status 400. */
export interface NoPlan {
  readonly kind: 'no-plan'
  readonly error: 'no_usable_index' | 'invalid_index'
  readonly reason: string
  /** An index with which the query could be served; null when no index would help. */
  readonly suggestion: IndexSuggestion | null
}
