/** The changes of a replica in the order of its sequence, and the places that readers have reached in them. */
import { call, pages, type VerbsOf } from '../verb-table.ts'
import type { AttachmentRecord, Leaf } from './document-revision.ts'

/** How far one replica has seen another's changes. `history` names one life of one replica's store. */
export interface ReplicaCheckpoint { readonly history: string; readonly sequence: number }

/**
 * Whoever has read all changes of another replica up to `theirs` needs none of this replica's up to `own`
 * (`sequences/sequence-trail.ts`).
 */
export interface TrailPoint { readonly theirs: number; readonly own: number }

/** What one pass to the replica of that history has shown. */
export interface TrailExtension {
  readonly history: string
  /** Held when the pass began. */
  readonly base: TrailPoint
  /** In ascending order, for the rows behind `base`. */
  readonly points: readonly TrailPoint[]
}

export interface ScanChangesRequest {
  /** The life of the replica that `since` belongs to: rejects with `not_hosted` when another one answers. */
  readonly history?: string
  /** Rows with a sequence greater than this (descending: all rows from the newest). */
  readonly since: number
  readonly descending: boolean
  readonly limit?: number
  readonly body: boolean
  /** Anti-entropy: also list local documents. */
  readonly locals: boolean
  /**
   * Indexes: also list, at the sequence of the purge, each document of which a purge left nothing. A reader that
   * replaces what it holds of a document by each of its rows, and removes it at a purged one, holds what the replica
   * held at the sequence of the last row. It must have read one life of the replica from 0 on, and name that life in
   * `CallContext.history`. Rejects with `position_expired` when such a purge behind `since` was forgotten
   * (`trimPurges`): the reader must begin at 0 again.
   */
  readonly purges?: boolean
}

export interface ChangeRow {
  readonly sequence: number
  readonly id: string
  /** All leaves, winner first; empty for a local or purged document. */
  readonly leaves: readonly Leaf[]
  readonly body?: Uint8Array
  /** The winner's, with its body. */
  readonly attachments?: readonly AttachmentRecord[]
  readonly local?: true
  /** A purge left nothing of the document at this sequence. A later row shows it when it was written again. */
  readonly purged?: true
}

/** When changes were recorded: up to 60 spans of time, oldest first, that grow longer with age. */
export interface TimeSpan {
  /** Milliseconds since 1970 at which it began. */
  readonly begin: number
  /** The first sequence of the span. */
  readonly sequence: number
}

/** `countChanges` counts the changes of so many sequences at least: counting costs a scan, for each page of a feed. */
export const countedChangesMin = 500

export const changeVerbs = {
  scanChanges: pages<ScanChangesRequest, ChangeRow>(),
  /**
   * Counts the documents whose last change has a sequence greater than the given one. The count is exact for 0 and
   * within `countedChangesMin` of the newest sequence, and an estimate otherwise.
   */
  countChanges: call<number, number>(),
  /**
   * Resolves with where the replica stands once that differs from the given checkpoint: its sequence is greater, or its
   * history is another. The call waits for that, so the timeout may be long. With an empty history it answers at once.
   */
  waitForChange: call<ReplicaCheckpoint, ReplicaCheckpoint>({ waits: ({ history }) => history !== '' }),
  /**
   * For a reader who has read other replicas up to these places, all at once: the own sequence behind which to go on.
   * What is not found behind it was read already, unless only a replica that is lost for good had a later revision of
   * it. 0 where nothing is known.
   */
  translateCheckpoints: call<readonly ReplicaCheckpoint[], number>(),
  /** With `clear`, forgets the spans before it answers; new changes begin a new span. */
  timeSpans: call<{ readonly clear: boolean }, readonly TimeSpan[]>(),
}

export interface ChangeReplica extends VerbsOf<typeof changeVerbs> {}
