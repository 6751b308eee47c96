/** Documents and their revisions: reading, deciding edits, storing what was decided elsewhere, lists by id. */
import { call, pages, type VerbsOf } from '../verb-table.ts'
import type { ReplicaCheckpoint, TrailExtension } from './change-verbs.ts'
import type { AttachmentRecord, DocumentRevision, Leaf, RevisionPath } from './document-revision.ts'
import type { IdBound, IdScan } from './id-scan.ts'
import type { LocalDocument } from './local-document-verbs.ts'

export interface OpenDocumentRequest {
  readonly id: string
  /** Send the winner's body. */
  readonly body: boolean
  /** Send every branch with the availability of bodies. */
  readonly tree: boolean
}

/** One branch of a tree: root-most last, like `RevisionPath`. */
export interface Branch {
  readonly path: RevisionPath
  readonly deleted: boolean
  /** For each entry of `path.ids`, whether the body is still stored. */
  readonly available: readonly boolean[]
  /** For each entry of `path.ids`, whether that revision is itself a tombstone. */
  readonly tombstones: readonly boolean[]
}

export interface DocumentSnapshot {
  /** Winner first, then in descending order of (not deleted, generation, hash). Never empty. */
  readonly leaves: readonly Leaf[]
  /** This replica's sequence of the document's last change. */
  readonly sequence: number
  readonly body?: Uint8Array
  /** The winner's, with its body. */
  readonly attachments?: readonly AttachmentRecord[]
  readonly tree?: readonly Branch[]
}

export interface OpenRevisionsRequest {
  readonly id: string
  /** Named revisions in this order, or every leaf, winner first. */
  readonly revisions: readonly string[] | 'leaves'
  /** Replace each named revision by the leaves that descend from it. */
  readonly latest: boolean
}

export type OpenedRevision =
  | { readonly kind: 'found'; readonly revision: DocumentRevision }
  | { readonly kind: 'missing'; readonly revision: string }

export interface RevisionsDiff {
  readonly id: string
  readonly missing: readonly string[]
  readonly possibleAncestors: readonly string[]
}

/** What one replica says of a document. */
export interface ReplicaDiff extends RevisionsDiff {
  /** This replica's sequence of the document's last change; 0: it has no such document. */
  readonly sequence: number
  /** It has leaves that were not asked for. */
  readonly otherLeaves: boolean
}

/** An interactive edit: the deciding replica checks for conflict and makes the new revision. */
export interface DocumentEdit {
  readonly id: string
  /** The revision the client edits, or null when it named none. */
  readonly parent: string | null
  readonly deleted: boolean
  readonly body: Uint8Array
  /**
   * Hash of the new revision computed for exactly `parent` (null: a first revision), so that the replica
   * parses nothing. When the edit revives a tombstone the replica computes the hash anew from `body`.
   */
  readonly revisionHash: string
  /**
   * Every attachment of the new revision; absent: none. An edit that revives a tombstone wrote all of them (`revpos`).
   */
  readonly attachments?: readonly AttachmentRecord[]
  /**
   * A random number from 1 to `attemptMax` that names one client's attempt to make this edit; the coordinator sends the
   * same number with each call that it makes for it. It is stored with the leaf. A replica whose leaf is the very
   * revision that the edit makes, by the same attempt, answers `updated` again, unless the parent got another child.
   * Another client's edit with the same content has another number, and gets `conflict`. Absent: a repeated call
   * conflicts with the first one.
   */
  readonly attempt?: number
}

/** 2^48: two edits of one parent with equal content share a number once in 2^48 cases. */
export const attemptMax = 2 ** 48

export type EditOutcome =
  /**
   * The revision with its ancestors as they were known, the parent at least: one more than `revsLimit` keeps.
   * `purges` as in `DocumentRevision`.
   */
  | { readonly kind: 'updated'; readonly path: RevisionPath; readonly purges?: readonly string[] }
  /** The document's partition is full. */
  | { readonly kind: 'partition_overflow' }
  | { readonly kind: 'conflict' }

export interface UpdateDocumentsRequest {
  readonly edits: readonly DocumentEdit[]
  /** Longest branch that is kept (`_revs_limit`). */
  readonly revsLimit: number
  /** Bytes of JSON in one partition from which on it only takes deletions; absent: no limit. */
  readonly partitionBytesMax?: number
  /** Decide even when this replica is still catching up with its peers. */
  readonly force?: boolean
}

/**
 * `declined`: the replica is catching up after an absence, and nothing was written. The caller gives it what other
 * replicas have of these documents, and then asks again with `force`.
 */
export type UpdateDocumentsReply =
  | { readonly kind: 'decided'; readonly outcomes: readonly EditOutcome[] }
  | { readonly kind: 'declined' }

export interface StoreRevisionsRequest {
  readonly revisions: readonly DocumentRevision[]
  readonly locals?: readonly LocalDocument[]
  readonly revsLimit: number
  /**
   * Anti-entropy only: with this batch the target has everything that the source replica of that history
   * had up to `sequence`. Written atomically with the batch; never lowers what is recorded.
   */
  readonly checkpoint?: ReplicaCheckpoint
  /** Anti-entropy only, to the source of a pass: where its changes stand in the target's log. */
  readonly trail?: TrailExtension
  /**
   * The replica did not store some earlier revisions that its peers have, as the sender knows. The replica's node then
   * has it catch up with its peers before it decides edits by itself again.
   */
  readonly missed?: boolean
  /**
   * A client brings these revisions (`new_edits=false`), which may bring purged ones back. Otherwise a revision that
   * this replica knows to be purged, by a purge that the sender does not name, is left out: the sender lags.
   */
  readonly external?: boolean
}

export interface StoreRevisionsReply {
  /**
   * Places in `revisions` of those that are stored but were not the first here: their parent has another child (without
   * a parent: the document has another root), or the leaf was made by another attempt. Only for revisions that name
   * theirs.
   */
  readonly rivals: readonly number[]
}

export const noRivals: StoreRevisionsReply = Object.freeze({ rivals: Object.freeze([]) })

export interface ScanDocumentsRequest extends IdScan {
  readonly body: boolean
  /** Also give all leaves (`conflicts=true`). */
  readonly leaves: boolean
}

/** A live document (tombstones are not listed). */
export interface DocumentRow {
  readonly id: string
  readonly revision: string
  readonly body?: Uint8Array
  /** With the body. */
  readonly attachments?: readonly AttachmentRecord[]
  readonly leaves?: readonly Leaf[]
}

export interface CountDocumentsRequest { readonly before?: IdBound; readonly descending: boolean }

export interface DiffRevisionsRequest { readonly id: string; readonly revisions: readonly string[] }

export const documentVerbs = {
  /** null: the replica has no such document. */
  openDocument: call<OpenDocumentRequest, DocumentSnapshot | null>(),
  /**
   * Answers the requests in order. When bodies are large it answers only the first requests (`openedBytesMax`), and the
   * first one in any case; the caller asks for the others again.
   */
  openRevisions: call<readonly OpenRevisionsRequest[], readonly (readonly OpenedRevision[])[]>(),
  updateDocuments: call<UpdateDocumentsRequest, UpdateDocumentsReply>(),
  storeRevisions: call<StoreRevisionsRequest, StoreRevisionsReply>(),
  diffRevisions: call<readonly DiffRevisionsRequest[], readonly ReplicaDiff[]>(),
  scanDocuments: pages<ScanDocumentsRequest, DocumentRow>(),
  /** Counts the live documents with an id before `before` (byte order), or all when it is absent. */
  countDocuments: call<CountDocumentsRequest, number>(),
}

export interface DocumentReplica extends VerbsOf<typeof documentVerbs> {}
