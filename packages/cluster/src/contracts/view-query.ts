/** The queries of views and the descriptions of their indexes, as the coordinator takes and answers them. */
import type { GroupPlace, IndexDefinition, IndexFailure, IndexInfo, RowRange } from '@sectional/core'

export interface ViewQuery {
  readonly definition: IndexDefinition
  /** Read one after the other (`viewRanges`). */
  readonly ranges: readonly RowRange[]
  readonly descending: boolean
  /** Number of rows (of a reduction: groups) to leave out at the beginning. */
  readonly skip: number
  /** Largest number of rows or groups; null: all. 0 is allowed, for an answer without rows. */
  readonly limit: number | null
  /**
   * true: the answer contains every write that this node had acknowledged before the query, as long as a replica that
   * confirmed it can be read. false: it is read from any state of the indexes. `lazy`: the same, and the builds begin
   * when the answer was read or closed.
   */
  readonly update: boolean | 'lazy'
  /** Only the shard of this partition is read. The ranges must then lie in the partition. */
  readonly partition?: string
  /** Milliseconds to wait for builds, for the whole query. */
  readonly timeoutMs: number
}

export interface ReduceQuery extends ViewQuery {
  readonly groupLevel: number | 'exact'
  readonly reduceAgain: ReduceAgain
}

/**
 * Makes the final value of each group from its values, one or more, which are those of the shards in the order of their
 * ranges. It is also called for groups with one value, because a reduce function may need a last step.
 *
 * @param signal aborts when the query was closed
 * @returns one value for each group, in order
 */
export type ReduceAgain =
  (groups: readonly (readonly Uint8Array[])[], signal: AbortSignal) => Promise<readonly Uint8Array[]>

export interface ViewGroup extends GroupPlace {
  /** As `ReduceAgain` returned it. */
  readonly value: Uint8Array
}

/** What is known of an answer before its rows are read. */
export interface ViewAnswer<Row> {
  /** Number of rows of the indexes that are read. In a partitioned query these are all rows of the shard. */
  readonly total: number
  /** Position of the first row among all rows, in the direction of the answer. 0 for a reduction. */
  readonly offset: number
  /** Returns a since-token of the changes that the answer contains. */
  readonly updateSequence: () => string
  /**
   * Distinguishes the rows of the indexes that are read: it is equal for two queries if all rows of these indexes are
   * equal, whichever replicas answer. It does not depend on the parameters of the query, nor on what documents contain
   * besides the rows.
   */
  readonly fingerprint: string
  /** Can be read once. Rejects with ApiError when no replica of a shard is left. */
  readonly rows: AsyncIterable<readonly Row[]>
  /** Ends all calls of the query. The caller must call it, whether it has read the rows or not. */
  close(): Promise<void>
}

/**
 * Describes several indexes together. Unless it says otherwise, a number is a sum over the indexes of one replica of
 * each shard, the first one that a query would ask.
 */
export interface ViewInfo {
  /** True while a build runs on one of these replicas. */
  readonly building: boolean
  /** Number of calls that wait for a build. */
  readonly waiting: number
  /** Sum of the sequences up to which all indexes of a replica have read the changes. */
  readonly readSequence: number
  /** Number of sequences that some index has not read yet: all, if it was never built. */
  readonly pending: {
    /** Sum of the smallest numbers among the replicas of each shard. */
    readonly minimum: number
    /** Sum over the replicas that a query would ask. */
    readonly preferred: number
    /** Sum over all replicas that have answered. */
    readonly total: number
  }
  /** Bytes, as in `IndexInfo`. */
  readonly sizes: IndexInfo['sizes']
  /** Number of documents without rows because a map function failed on them, counted for each index. */
  readonly failedCount: number
  /** Some of them, at most `indexFailuresMax`. */
  readonly failures: readonly IndexFailure[]
}
