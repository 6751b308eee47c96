/** What an index contains at one moment, and how much of it a call requires. */
import type { ReplicaCheckpoint } from '../shard-replica/change-verbs.ts'

/**
 * The sequence up to which an index must hold the replica's changes. `newest`: the replica's sequence when the call
 * arrives, which a greater number also means. 0: any state of the index suffices.
 */
export type RequiredSequence = number | 'newest'

/** What an index contains at one moment. */
export interface IndexState {
  /**
   * Invariant: each document has the rows of the state that it had in that history of the replica after that sequence,
   * or of a later state. The sequence moves when a build has read the changes to their end, not in between: a document
   * that changed twice is listed at its last change only, so a build that has passed the first one may lack both.
   */
  readonly position: ReplicaCheckpoint
  /** The sequence up to which builds have read, for progress; at least `position.sequence`. */
  readonly readSequence: number
  /**
   * A digest of the rows of the index and nothing else. So indexes with one definition have equal versions when their
   * rows are equal, on all replicas of a shard and in all their histories, and other versions when their rows differ.
   */
  readonly version: string
  readonly rowCount: number
}

/** Comes before the rows of each answer, also when there are none. The answer is read from this state of the index. */
export interface IndexHead extends IndexState {
  readonly kind: 'head'
  /** Number of rows of the index before the first range, in the direction of the scan. 0 for a reduction. */
  readonly rowsBefore: number
}
