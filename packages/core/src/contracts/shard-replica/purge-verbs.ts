/** Purges, which remove revisions from every replica, and the records by which replicas pass them on. */
import { call, pages, type VerbsOf } from '../verb-table.ts'
import type { ReplicaCheckpoint } from './change-verbs.ts'
import type { RevisionPath } from './document-revision.ts'

/** The purge of one document, as replicas pass it on. Each replica applies it once, even if several senders send it. */
export interface Purge {
  readonly uuid: string
  readonly id: string
  /** The purged revisions, each with the ancestors that were known when the purge was requested. */
  readonly paths: readonly RevisionPath[]
}

export interface PurgeDocumentsRequest {
  readonly purges: readonly Purge[]
  /**
   * For anti-entropy only: after this batch the target has applied every purge that the source replica had recorded up
   * to `sequence`.
   */
  readonly checkpoint?: ReplicaCheckpoint
}

/** For each purge, the leaves that it removed from this replica; none for a purge that was applied before. */
export type PurgeDocumentsReply = readonly (readonly string[])[]

/** A recorded purge. `sequence` numbers this replica's purges from 1. */
export interface PurgeRow extends Purge { readonly sequence: number }

export const purgeVerbs = {
  /**
   * Removes the named revisions that are leaves, and their ancestors that have no other child. A purge that removes
   * nothing is recorded as well.
   */
  purgeDocuments: call<PurgeDocumentsRequest, PurgeDocumentsReply>(),
  /** Lists the recorded purges with a sequence greater than the given one, oldest first. */
  scanPurges: pages<number, PurgeRow>(),
  /** Deletes the records up to the given sequence. Call it only when every replica has applied these purges. */
  trimPurges: call<number, void>(),
}

export interface PurgeReplica extends VerbsOf<typeof purgeVerbs> {}
