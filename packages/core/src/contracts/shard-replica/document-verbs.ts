/** Documents and their revisions: reads, decisions of edits, storage of revisions decided elsewhere, lists by id. */
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

/** One branch of a revision tree, from the leaf to the oldest known ancestor, as in `RevisionPath`. */
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
  /** The attachments of the winner. Present only together with `body`. */
  readonly attachments?: readonly AttachmentRecord[]
  readonly tree?: readonly Branch[]
}

export interface OpenRevisionsRequest {
  readonly id: string
  /** The named revisions in this order, or all leaves, winner first. */
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

/** The difference between one replica's leaves of a document and the revisions in the request. */
export interface ReplicaDiff extends RevisionsDiff {
  /** This replica's sequence of the document's last change; 0: it has no such document. */
  readonly sequence: number
  /** True when the replica has leaves that are not among the revisions in the request. */
  readonly otherLeaves: boolean
}

/** An interactive edit. The deciding replica checks it for a conflict and makes the new revision. */
export interface DocumentEdit {
  readonly id: string
  /** The revision that the client edits; null: the client named none. */
  readonly parent: string | null
  readonly deleted: boolean
  readonly body: Uint8Array
  /**
   * Hash of the new revision, computed for exactly this `parent` (null: a first revision), so that the replica need not
   * parse the body. When the edit revives a tombstone, the replica computes the hash again from `body`.
   */
  readonly revisionHash: string
  /**
   * All attachments of the new revision; absent: none. When the edit revives a tombstone, the replica sets `revpos` of
   * all of them to the new generation.
   */
  readonly attachments?: readonly AttachmentRecord[]
  /**
   * A random number from 1 to `attemptMax` that identifies one client's attempt to make this edit. The coordinator
   * sends the same number with each call that it makes for this edit. The number is stored with the leaf. When the leaf
   * is already the revision that the edit makes, by the same attempt, the replica answers `updated` again, unless the
   * parent got another child. Another client's edit with the same content has another number and gets `conflict`.
   * Absent: a repeated call conflicts with the first one.
   */
  readonly attempt?: number
  /**
   * For an edit without `parent`: the tombstone that it may extend. When the winner is another tombstone, or any one if
   * this is null, the replica writes nothing and answers `tombstone`. A call that is repeated or comes late can then
   * not restore a document that was deleted after this edit was made. Absent: the edit extends any tombstone.
   */
  readonly revives?: string | null
}

/** 2^48: two edits of one parent with equal content have the same number with a probability of 1 in 2^48. */
export const attemptMax = 2 ** 48

export type EditOutcome =
  /**
   * `path` is the new revision with its known ancestors before stemming, so that it includes the parent even when
   * `revsLimit` is 1. `purges` is as in `DocumentRevision`.
   */
  | { readonly kind: 'updated'; readonly path: RevisionPath; readonly purges?: readonly string[] }
  /** The document's partition is full. */
  | { readonly kind: 'partition_overflow' }
  /** Nothing was written: the edit would extend this tombstone, which `DocumentEdit.revives` does not name. */
  | { readonly kind: 'tombstone'; readonly revision: string }
  | { readonly kind: 'conflict' }

export interface UpdateDocumentsRequest {
  readonly edits: readonly DocumentEdit[]
  /** How many revisions of each branch are kept after the call (`RevisionTree.stem`). */
  readonly revsLimit: number
  /** A partition that has this many bytes of JSON accepts only deletions; absent: no limit. */
  readonly partitionBytesMax?: number
  /** Decide the edits even when this replica is still catching up with its peers. */
  readonly force?: boolean
}

/**
 * `declined`: the replica is catching up after an absence and wrote nothing. The caller stores on it the revisions that
 * other replicas have of these documents, and then calls again with `force`.
 */
export type UpdateDocumentsReply =
  | { readonly kind: 'decided'; readonly outcomes: readonly EditOutcome[] }
  | { readonly kind: 'declined' }

export interface StoreRevisionsRequest {
  readonly revisions: readonly DocumentRevision[]
  readonly locals?: readonly LocalDocument[]
  readonly revsLimit: number
  /**
   * For anti-entropy only: after this batch the target has all changes that the source replica of that history had up
   * to `sequence`. It is written atomically with the batch, and never lowers the recorded sequence.
   */
  readonly checkpoint?: ReplicaCheckpoint
  /** For anti-entropy only, and sent to the source of a pass: the positions of its changes in the target's changes. */
  readonly trail?: TrailExtension
  /**
   * The sender knows that the replica did not store some earlier revisions that its peers have. The replica's node then
   * lets it catch up with its peers before it decides edits by itself again.
   */
  readonly missed?: boolean
  /**
   * A client wrote these revisions (`new_edits=false`), which may restore purged ones, and the content of ancestors
   * that have none. When absent, known revisions change no content, and the replica leaves out a revision that it knows
   * to be purged by a purge that the sender does not list in `DocumentRevision.purges`, because the sender has not
   * applied that purge yet.
   */
  readonly external?: boolean
}

export interface StoreRevisionsReply {
  /**
   * Indexes in the request's `revisions` of the revisions that are stored but rival with an earlier one: their parent
   * has another child (a revision without a parent: the document has another root), or another attempt made the same
   * revision, which is a leaf or was replaced a short time ago. When the attempt is not known, the first one that is
   * stored counts. Only revisions with an `attempt` are listed.
   */
  readonly rivals: readonly number[]
  /**
   * Indexes in the request's `revisions` of the revisions that were not stored, because each would be one more branch
   * of a document that has `documentLeavesMax` leaves. Only revisions of an `external` request are refused. Absent:
   * none.
   */
  readonly refused?: readonly number[]
}

export const noRivals: StoreRevisionsReply = Object.freeze({ rivals: Object.freeze([]) })

export interface ScanDocumentsRequest extends IdScan {
  readonly body: boolean
  /** Also return all leaves (`conflicts=true`). */
  readonly leaves: boolean
}

/** A live document. Deleted documents are not listed. */
export interface DocumentRow {
  readonly id: string
  readonly revision: string
  readonly body?: Uint8Array
  /** Present only together with `body`. */
  readonly attachments?: readonly AttachmentRecord[]
  readonly leaves?: readonly Leaf[]
}

export interface CountDocumentsRequest { readonly before?: IdBound; readonly descending: boolean }

export interface DiffRevisionsRequest { readonly id: string; readonly revisions: readonly string[] }

export const documentVerbs = {
  /** null: the replica has no such document. */
  openDocument: call<OpenDocumentRequest, DocumentSnapshot | null>(),
  /**
   * Answers the requests in order. When bodies are large, it answers only as many of the first requests as fit into
   * `openedBytesMax`, and at least one; the caller repeats the remaining requests.
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
