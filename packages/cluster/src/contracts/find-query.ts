/** Queries by selector, as the planner has decided to execute them, and their answers. */
import type {
  AggregateQuery, FieldPath, FindRequest, FoundDocument, IdBound, IndexDefinition, RowRange, ScannedPlace, Selector,
} from '@sectional/core'
import type { ViewQuery } from './view-query.ts'

/** Where a query looks for matches. */
export type FindQuerySource =
  /** The rows of an index of the kind `query` in these ranges, in the order of the index. */
  | {
    readonly kind: 'index'
    readonly definition: IndexDefinition
    readonly ranges: readonly RowRange[]
    /** Each match has a row with this key in a second index, by which replicas may filter the rows. */
    readonly within?: { readonly definition: IndexDefinition; readonly key: string }
  }
  /** All documents in the byte order of their ids. `start` and `end` are in the direction of the answer. */
  | { readonly kind: 'documents'; readonly start?: IdBound; readonly end?: IdBound }

/** Sorts the matches in the memory of the coordinator, for a query whose order no index has. */
export interface MemorySort {
  /** Matches are ordered by the values of these fields, then by id. Documents that lack one of them are left out. */
  readonly fields: readonly FieldPath[]
  /** The largest number of matches to hold, `skip` and `limit` together. More are an error. */
  readonly rowsMax: number
}

export interface FindQuery extends Pick<FindRequest, 'descending' | 'documents'>,
  Pick<ViewQuery, 'update' | 'timeoutMs' | 'partition'> {
  readonly selector: Selector
  readonly source: FindQuerySource
  /** Whether the ranges of the index contain matches only (`hasExactRanges`). */
  readonly isExact: boolean
  /** Only matches strictly behind this place in the order of the answer, where the page before ended. */
  readonly after?: ScannedPlace
  /** Number of matches to leave out at the beginning, or behind `after`. */
  readonly skip: number
  /** Largest number of matches; null: all. */
  readonly limit: number | null
  /**
   * The number of replicas that each document is read from; absent: 1. With more, the selector is tested on what they
   * know together, and `documents` must not be `none`.
   */
  readonly r?: number
  /** Absent: the matches come in the order of the source. Otherwise `descending` is the direction of this order. */
  readonly sort?: MemorySort
}

/** What was read for an answer so far. */
export interface FindStatistics {
  /** Number of rows of the index, or of ids when documents are read without an index. */
  readonly keysExamined: number
  /** Number of documents that replicas have read. */
  readonly documentsExamined: number
  /** Number of documents that were read from several replicas. */
  readonly quorumDocumentsExamined: number
  /** Number of matches among them. Shards may have found more than the answer needs. */
  readonly matchesFound: number
}

/** Where a match is in the order of the answer. */
export interface MatchPosition extends ScannedPlace {
  /**
   * With an index, the values of its columns, with a sort in memory those of the fields, as the row of an index has
   * them (`decodeViewRow`). Otherwise empty.
   */
  readonly value: Uint8Array
}

export interface FindAnswer {
  /** The matches in order, in pages. Can be read once. Rejects with ApiError when no replica of a shard is left. */
  readonly matches: AsyncIterable<readonly FoundDocument[]>
  /** Returns what replicas have reported so far. They may have read more than was needed for the limit. */
  statistics(): FindStatistics
  /**
   * Returns the position of the last match that was left out (`skip`) or returned, behind which the next page begins.
   * Undefined when there was none.
   */
  lastPosition(): MatchPosition | undefined
  /** Ends all calls of the query. The caller must call it, whether it has read the matches or not. */
  close(): Promise<void>
}

export interface CountQuery extends Pick<
  FindQuery, 'selector' | 'source' | 'isExact' | 'documents' | 'update' | 'timeoutMs' | 'partition'
> {}

export interface MatchAggregation extends CountQuery {
  readonly aggregate: AggregateQuery
}

export interface AggregatedMatches {
  /** As `Aggregation.rows`. */
  readonly rows: readonly string[]
  /** Number of matches. */
  readonly count: number
  readonly statistics: FindStatistics
}

export interface MatchCount { readonly count: number; readonly statistics: FindStatistics }

/** An index that could serve a query, and what the query would read of it. */
export type IndexRanges = Pick<FindQuerySource & { readonly kind: 'index' }, 'definition' | 'ranges'>
