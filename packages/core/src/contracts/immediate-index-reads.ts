import type { IndexHead, IndexRow, ReducedGroup, ReduceIndexRequest, ScanIndexRequest } from './index-replica.ts'

/**
 * Reads of the indexes of a replica on this node that need neither the disk nor a wait. Each gives a whole answer of a
 * verb of `IndexReplica`, `scanIndex` or `reduceIndex`: the head, and all rows or groups. It gives undefined when it
 * cannot: the index does not exist or has not reached `through`, a part of the answer is not in memory, or the answer
 * is long. The caller then calls the verb.
 */
export interface ImmediateIndexReads {
  beginScan(request: ScanIndexRequest): ImmediateScan | undefined
  reduceIndex(request: ReduceIndexRequest): ImmediateAnswer<ReducedGroup> | undefined
}

/**
 * A scan that has found in which part of the index its first rows are. All of its methods are called in the turn of the
 * event loop in which it began. They do not throw.
 *
 * The steps before the answer are for the scans of several shards: each step is made for all of them before the next
 * one. A step reads memory that depends on what the step before has read, and that is probably in none of the
 * processor's caches. In steps, the processor waits for the memory of all shards at the same time, and otherwise for
 * that of one after the other (`scanTogether`).
 */
export interface ImmediateScan {
  /** The first step: finds the first rows in memory. */
  locate(): void
  /** The second step: reads the memory of these rows in which `answer` searches. */
  touch(): void
  answer(): ImmediateAnswer<IndexRow> | undefined
}

/** Returns the answers of the indexes of several shards, in their order. Undefined for one gives undefined. */
export function scanTogether(
  indexes: readonly (ImmediateIndexReads | undefined)[], request: ScanIndexRequest,
): readonly (ImmediateAnswer<IndexRow> | undefined)[] {
  const scans = indexes.map(each => each?.beginScan(request))
  for (const scan of scans) scan?.locate()
  for (const scan of scans) scan?.touch()
  return scans.map(scan => scan?.answer())
}

export interface ImmediateAnswer<Row> { readonly head: IndexHead; readonly rows: RowSequence<Row> }

/** A list of rows, each of which may be made when it is read. */
export interface RowSequence<Row> extends Iterable<Row> {
  readonly length: number
  /** Returns undefined from `length` on. @param index from 0 */
  at(index: number): Row | undefined
}
