import type { IndexHead, IndexRow, ReducedGroup, ReduceIndexRequest, ScanIndexRequest } from './index-replica.ts'

/**
 * Reads of the indexes of a replica on this node that need neither the disk nor a wait. Each returns a whole answer of
 * the verb of `IndexReplica` that it is named after: the head, and all rows or groups. It returns undefined when it
 * cannot: the index does not exist or has not reached `through`, a part of the answer is not in memory, or the answer
 * is long. The caller then calls the verb.
 */
export interface ImmediateIndexReads {
  scanIndex(request: ScanIndexRequest): ImmediateAnswer<IndexRow> | undefined
  reduceIndex(request: ReduceIndexRequest): ImmediateAnswer<ReducedGroup> | undefined
}

export interface ImmediateAnswer<Row> { readonly head: IndexHead; readonly rows: RowSequence<Row> }

/** A list of rows, each of which may be made when it is read. */
export interface RowSequence<Row> extends Iterable<Row> {
  readonly length: number
  /** Returns undefined from `length` on. @param index from 0 */
  at(index: number): Row | undefined
}
