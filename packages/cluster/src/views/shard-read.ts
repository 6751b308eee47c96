/** What a query reads of the index of one shard, and an answer to it. */
import type {
  CallContext, ImmediateAnswer, ImmediateIndexReads, IndexDefinition, IndexHead, IndexRead, IndexReplica,
  ReplicaErrorCode,
} from '@sectional/core'
import type { Peer, ShardPlace } from '../replicas/replica-access.ts'

/** A verb of `IndexReplica` that answers with a head and rows. */
export interface ReadIndex<Place, Row> {
  readonly call: (
    indexes: IndexReplica, read: IndexRead<Place>, call: CallContext,
  ) => AsyncIterable<readonly (IndexHead | Row)[]>
  /**
   * The same for the local indexes of several shards that are in memory. Returns one answer for each, in their order,
   * and undefined for those that are undefined.
   */
  readonly immediate: (
    indexes: readonly (ImmediateIndexReads | undefined)[], read: IndexRead<Place>,
  ) => readonly (ImmediateAnswer<Row> | undefined)[]
  /** Returns by how many the rows of a page reduce the limit. Absent: by one for each row. */
  readonly countOf?: (rows: readonly Row[]) => number
  /** An error with this code ends the query, because every replica would answer with it. */
  readonly failsWith?: ReplicaErrorCode
}

/** The rows of one shard, of which the first page is there. */
export interface ShardRows<Row> {
  readonly place: ShardPlace
  /** What the replica that was asked first has reported, and its node. */
  readonly head: IndexHead
  readonly node: string
  /** Returns the rows in order. Can be called once. Every page has at least one row. */
  pages(): AsyncIterable<readonly Row[]>
  close(): Promise<void>
}

/** What a query reads of the index of each shard, and how fresh it must be. */
export interface ShardRead<Place, Row> {
  readonly definition: IndexDefinition
  readonly update: boolean | 'lazy'
  readonly read: Pick<IndexRead<Place>, 'ranges' | 'descending'>
  readonly open: ReadIndex<Place, Row>['call']
  readonly countOf?: ReadIndex<Place, Row>['countOf']
  readonly failsWith?: ReplicaErrorCode
  /** The last write that the answer must contain with `update=true` (`UnconfirmedWrites.newest`). */
  readonly newest: number
  /** Milliseconds to wait for builds when another replica takes over. */
  readonly timeoutMs: number
  readonly requestId: string
  /** Aborts when the query is closed or its client has disconnected. */
  readonly signal: AbortSignal
}

/** What is left to read. */
export type ReadRest<Place> = Pick<IndexRead<Place>, 'after' | 'skip' | 'limit'>

/** An answer of one replica, of which the first page was received. */
export interface OpenedIndex<Row> {
  readonly peer: Peer
  readonly head: IndexHead
  /** The rows of the first page. */
  readonly first: readonly Row[]
  readonly pages: AsyncIterator<readonly (IndexHead | Row)[]>
}
