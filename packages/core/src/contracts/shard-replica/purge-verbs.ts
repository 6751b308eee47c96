/** Purges: revisions that every replica forgets, and the records by which replicas learn of them. */
import { call, pages, type VerbsOf } from '../verb-table.ts'
import type { ReplicaCheckpoint } from './change-verbs.ts'
import type { RevisionPath } from './document-revision.ts'

/** One document's part of a purge, as replicas hand it on. Each replica applies it once, whoever brings it. */
export interface Purge {
  readonly uuid: string
  readonly id: string
  /** The purged revisions, each with the ancestors that were known when the purge was asked for. */
  readonly paths: readonly RevisionPath[]
}

export interface PurgeDocumentsRequest {
  readonly purges: readonly Purge[]
  /**
   * Anti-entropy only: with this batch the target has every purge that the source replica had recorded up to
   * `sequence`.
   */
  readonly checkpoint?: ReplicaCheckpoint
}

/** For each purge the revisions that were leaves here and are gone; none for a purge that was applied before. */
export type PurgeDocumentsReply = readonly (readonly string[])[]

/** A recorded purge; `sequence` counts this replica's purges from 1. */
export interface PurgeRow extends Purge { readonly sequence: number }

export const purgeVerbs = {
  /**
   * Removes revisions that are leaves, and ancestors that have no other child. A purge that finds nothing is recorded,
   * too.
   */
  purgeDocuments: call<PurgeDocumentsRequest, PurgeDocumentsReply>(),
  /** Recorded purges with a sequence greater than the given one, oldest first. */
  scanPurges: pages<number, PurgeRow>(),
  /** Forgets the records up to the given sequence: every replica has applied these purges. */
  trimPurges: call<number, void>(),
}

export interface PurgeReplica extends VerbsOf<typeof purgeVerbs> {}
