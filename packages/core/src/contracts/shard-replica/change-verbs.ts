/** The changes of a replica in the order of its sequence, and the positions that readers have reached in them. */
import type { CallContext } from '../call-context.ts'
import { call, pages, type VerbsOf } from '../verb-table.ts'
import type { AttachmentRecord, Leaf } from './document-revision.ts'

/** The position up to which a reader has read a replica's changes. `history` identifies the replica's store. */
export interface ReplicaCheckpoint { readonly history: string; readonly sequence: number }

/**
 * A pair of positions in the changes of this replica (`own`) and of a peer (`theirs`). Invariant: a reader that has
 * read all changes of the peer up to `theirs` needs none of this replica's changes up to `own`
 * (`sequences/sequence-trail.ts`).
 */
export interface TrailPoint { readonly theirs: number; readonly own: number }

/** The points that one pass of anti-entropy, to the replica with that history, has found. */
export interface TrailExtension {
  readonly history: string
  /** A point that was valid when the pass began. */
  readonly base: TrailPoint
  /** In ascending order. They hold for the changes after `base`. */
  readonly points: readonly TrailPoint[]
}

export interface ScanChangesRequest {
  /** The history to which `since` belongs. The call rejects with `not_hosted` when the replica has another one. */
  readonly history?: string
  /** Ascending: only rows with a greater sequence. Descending: ignored; all rows are listed, from the newest. */
  readonly since: number
  readonly descending: boolean
  readonly limit?: number
  readonly body: boolean
  /** For anti-entropy: also list local documents. */
  readonly locals: boolean
  /**
   * For indexes: also list each document that a purge removed completely, at the sequence of the purge, unless it was
   * written or purged again before the scan began: then only the later row lists it. A reader that replaces its copy
   * of a document at each row, and removes it at a purged row, holds at the end of the scan what the replica held at
   * the sequence of the last row. The reader must have read the changes of one history from 0 on, and must name that
   * history in `CallContext.history`. Rejects with `position_expired` when the record of such a purge after `since` was
   * trimmed (`trimPurges`); the reader must then begin at 0 again.
   */
  readonly purges?: boolean
}

export interface ChangeRow {
  readonly sequence: number
  readonly id: string
  /** All leaves, winner first; empty for a local or purged document. */
  readonly leaves: readonly Leaf[]
  readonly body?: Uint8Array
  /** The attachments of the winner. Present only together with `body`. */
  readonly attachments?: readonly AttachmentRecord[]
  readonly local?: true
  /** A purge removed the document completely at this sequence. */
  readonly purged?: true
}

/** A span of time in which changes were recorded (`sequences/time-spans.ts`). */
export interface TimeSpan {
  /** Begin of the span, in milliseconds since 1970. */
  readonly begin: number
  /** The first sequence of the span. */
  readonly sequence: number
}

/**
 * `countChanges` counts exactly when at most this many sequences are left, and estimates otherwise: an exact count
 * needs a scan, and a feed counts for each page.
 */
export const countedChangesMin = 500

export const changeVerbs = {
  scanChanges: pages<ScanChangesRequest, ChangeRow>(),
  /**
   * Counts the documents whose last change has a sequence greater than the given one. The count is exact for 0 and
   * within `countedChangesMin` of the newest sequence, and an estimate otherwise.
   */
  countChanges: call<number, number>(),
  /**
   * Waits until the replica's position differs from the given checkpoint, by a greater sequence or by another history,
   * and resolves with that position. The timeout may therefore be long. With an empty history it answers at once.
   */
  waitForChange: call<ReplicaCheckpoint, ReplicaCheckpoint>({ waits: ({ history }) => history !== '' }),
  /**
   * For a reader that has read other replicas up to all of the given checkpoints: returns this replica's sequence after
   * which the reader continues here. The reader misses no change by that, except for a revision that only a permanently
   * lost replica had. 0 when no trail relates the checkpoints to this replica.
   */
  translateCheckpoints: call<readonly ReplicaCheckpoint[], number>(),
  /** With `clear`, deletes the spans before it answers; the next change begins a new span. */
  timeSpans: call<{ readonly clear: boolean }, readonly TimeSpan[]>(),
}

export interface ChangeReplica extends VerbsOf<typeof changeVerbs> {}

/**
 * Returns the replica's position now; the replica reads nothing for this. Rejects with `other_history` when the context
 * names another history.
 */
export function newestPosition(
  replica: Pick<ChangeReplica, 'waitForChange'>, context: CallContext,
): Promise<ReplicaCheckpoint> {
  return replica.waitForChange({ history: '', sequence: 0 }, context)
}
