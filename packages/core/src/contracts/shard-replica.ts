/**
 * The contract where `shard`, `rpc` and `cluster` meet (design.md section 3): one replica of one shard.
 * The engine implements it on a store; the remote stub implements it over the wire; the coordinator and
 * anti-entropy use it without knowing which one they hold. Its conformance suite lies beside it
 * (`shard-replica-suite.ts`), and every implementation runs it.
 */

/** Inclusive range of the 32-bit hash space, `0 <= begin <= end <= 0xffffffff`. */
export interface HashRange { readonly begin: number; readonly end: number }

/** One shard of one incarnation of a database: a re-created name is another incarnation. */
export interface ShardId { readonly incarnation: string; readonly range: HashRange }

/** Budget and cancellation of one call. */
export interface CallContext {
  /** Milliseconds this call may take; afterwards it rejects with `ReplicaError('timeout')`. */
  readonly timeoutMs: number
  /** Aborts the call (and at the far end, the work) early. */
  readonly signal?: AbortSignal
  /** The request id that logs on every node carry. */
  readonly requestId?: string
  /**
   * The life of the replica that the call is meant for (`ReplicaInfo.history`). When the replica is in another life by
   * then, the call does nothing and rejects with `other_history`. Absent: any life.
   */
  readonly history?: string
}

/** A revision's ancestry as in `_revisions`: `ids[0]` is the hash at generation `start`, then its parents. */
export interface RevisionPath { readonly start: number; readonly ids: readonly string[] }

/** One leaf of a revision tree. `revision` is `{generation}-{hash}`. */
export interface Leaf { readonly revision: string; readonly deleted: boolean }

/** One attachment of one revision. The content lies apart, as a blob of each node that holds the document. */
export interface AttachmentRecord {
  readonly name: string
  readonly contentType: string
  /** Generation of the revision that wrote it. */
  readonly revpos: number
  /** Base64 of the MD5 of the stored bytes. */
  readonly digest: string
  /** SHA-256 of the stored bytes in lower-case hex: names the blob. */
  readonly blob: string
  /** Bytes of the content as clients see it. */
  readonly length: number
  /** How the stored bytes are encoded. */
  readonly encoding: 'identity' | 'gzip'
  /** Bytes as they are stored. */
  readonly storedLength: number
}

/** A revision with its content, as it travels between replicas. */
export interface DocumentRevision {
  readonly id: string
  readonly path: RevisionPath
  readonly deleted: boolean
  /** UTF-8 JSON object text without members that start with an underscore; `{}` when empty. Never re-serialised. */
  readonly body: Uint8Array
  /** In the document's order; absent: none. */
  readonly attachments?: readonly AttachmentRecord[]
  /** Purges that name this revision and that its sender had applied before it got the revision (anew). Absent: none. */
  readonly purges?: readonly string[]
  /** The attempt that made it (`DocumentEdit`), while the sender knows it. Absent: none, or it is forgotten. */
  readonly attempt?: number
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
  /** Every attachment of the new revision; absent: none. An edit that revives a tombstone wrote all of them (`revpos`). */
  readonly attachments?: readonly AttachmentRecord[]
  /**
   * A random number from 1 to `attemptMax` that names one client's attempt to make this edit; the coordinator sends the
   * same number with each call that it makes for it. It is stored with the leaf. A replica whose leaf is the very revision
   * that the edit makes, by the same attempt, answers `updated` again, unless the parent got another child. Another client's edit with the same content has
   * another number, and gets `conflict`. Absent: a repeated call conflicts with the first one.
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
 * `declined`: the replica is catching up after an absence: give it what others have of these documents, then ask
 * with `force` (design.md section 4). Nothing was written.
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
   * Places in `revisions` of those that are stored but were not the first here: their parent has another child (without a
   * parent: the document has another root), or the leaf was made by another attempt. Only for revisions that name theirs.
   */
  readonly rivals: readonly number[]
}

export const noRivals: StoreRevisionsReply = Object.freeze({ rivals: Object.freeze([]) })

/** One document's part of a purge, as replicas hand it on. Each replica applies it once, whoever brings it. */
export interface Purge {
  readonly uuid: string
  readonly id: string
  /** The purged revisions, each with the ancestors that were known when the purge was asked for. */
  readonly paths: readonly RevisionPath[]
}

export interface PurgeDocumentsRequest {
  readonly purges: readonly Purge[]
  /** Anti-entropy only: with this batch the target has every purge that the source replica had recorded up to `sequence`. */
  readonly checkpoint?: ReplicaCheckpoint
}

/** For each purge the revisions that were leaves here and are gone; none for a purge that was applied before. */
export type PurgeDocumentsReply = readonly (readonly string[])[]

/** A recorded purge; `sequence` counts this replica's purges from 1. */
export interface PurgeRow extends Purge { readonly sequence: number }

export interface PartitionInfo {
  readonly documentCount: number
  readonly deletedCount: number
  /** Bytes, as in `ReplicaInfo`. */
  readonly sizes: { readonly active: number; readonly external: number }
}

/** When changes were recorded: up to 60 spans of time, oldest first, that grow longer with age. */
export interface TimeSpan {
  /** Milliseconds since 1970 at which it began. */
  readonly begin: number
  /** The first sequence of the span. */
  readonly sequence: number
}

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

/** Bound of a scan by document id (byte order of UTF-8). */
export interface IdBound { readonly id: string; readonly inclusive: boolean }

export interface ScanDocumentsRequest {
  /** First and last in the direction of the scan. */
  readonly start?: IdBound
  readonly end?: IdBound
  readonly descending: boolean
  readonly limit?: number
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

/** A local document. Merged between replicas by the greater `stamp`, then `revision`, then body bytes. */
export interface LocalDocument {
  /** Without the `_local/` prefix. */
  readonly id: string
  /** N of `0-N`. */
  readonly revision: number
  /** Milliseconds of the deciding replica's clock, always greater than the stamp that it replaces. */
  readonly stamp: number
  /** null: deleted. */
  readonly body: Uint8Array | null
}

export interface UpdateLocalDocumentRequest {
  readonly id: string
  /** N of `0-N`. */
  readonly revision: number
  readonly body: Uint8Array | null
  /** Deleting: fail with `missing` when there is nothing to delete. */
  readonly mustExist: boolean
}

export type UpdateLocalDocumentReply =
  | { readonly kind: 'updated'; readonly document: LocalDocument }
  | { readonly kind: 'missing' }

export interface ScanLocalDocumentsRequest {
  readonly start?: IdBound
  readonly end?: IdBound
  readonly descending: boolean
  readonly limit?: number
}

export interface ReplicaInfo {
  /** Names this life of this replica's store: random, new when the store is. */
  readonly history: string
  /** Newest committed sequence. */
  readonly sequence: number
  readonly documentCount: number
  readonly deletedCount: number
  readonly purgeSequence: number
  /** Sequence of the oldest purge that is still recorded; 0: none is. */
  readonly oldestPurge: number
  /** Which purges of others this replica has applied: history -> their purge sequence. */
  readonly purgesSeen: Readonly<Record<string, number>>
  /** Old bodies are being dropped. */
  readonly compacting: boolean
  /** Bytes; `file` on disk (approximate), `active` live encoded data, `external` live JSON. */
  readonly sizes: { readonly file: number; readonly active: number; readonly external: number }
  /** What this replica has seen of others: history -> sequence. */
  readonly seen: Readonly<Record<string, number>>
  /** True after an absence, until its peers' changes have been fetched. */
  readonly catchingUp: boolean
}

/** `countChanges` counts the changes of so many sequences at least: counting costs a scan, for each page of a feed. */
export const countedChangesMin = 500

/** Digest of the leaves of the documents whose id hashes into one of equally many buckets. */
export type DigestBuckets = readonly string[]

export interface DocumentLeaves { readonly id: string; readonly leaves: readonly Leaf[] }

export interface WrittenBlob { readonly hash: string; readonly length: number }

/** Bytes of a blob; `end` is exclusive, and both are cut to its length. Absent: all of it. */
export interface BlobSpan { readonly start: number; readonly end: number }

/** A reply of `openRevisions` or `openLocalDocuments` ends with the document that goes beyond so many bytes. */
export const openedBytesMax = 1024 * 1024
/** What a revision counts for beside its body: a document may have thousands of leaves with small bodies. */
export const openedRevisionBytes = 256

/** About the bytes that a revision takes when it travels. */
export function revisionBytes({ id, path, body, attachments = [] }: DocumentRevision): number {
  const names = attachments.reduce((sum, { name, contentType }) => sum + name.length + contentType.length + attachmentBytes, 0)
  return id.length + path.ids.length * hashBytes + body.length + names
}

const attachmentBytes = 128
const hashBytes = 20

/** About the bytes of what is found of one document. */
export function openedBytes(revisions: readonly OpenedRevision[]): number {
  return revisions.reduce((sum, each) => sum + (each.kind === 'found' ? revisionBytes(each.revision) : 0), 0)
}

/** Of the first entries, as many as take few bytes (`openedBytesMax`), and the first in any case. */
export function fittingFirst<T>(entries: readonly T[], bytesOf: (entry: T) => number): readonly T[] {
  let bytes = 0
  for (const [index, entry] of entries.entries()) {
    if (bytes > openedBytesMax) return entries.slice(0, index)
    bytes += bytesOf(entry)
  }
  return entries
}

/**
 * One replica of one shard. Every promise that confirms a write resolves only after the write is durable
 * (fsync'ed). Failures reject with `ReplicaError`; per-document outcomes are values. Scans are pages;
 * stopping early (`return`) releases everything at both ends.
 */
export interface ShardReplica {
  openDocument(request: OpenDocumentRequest, context: CallContext): Promise<DocumentSnapshot | null>
  /** In order. Where bodies are large, of the first requests only (`openedBytesMax`), and of the first one in any case: the others are to be asked for again. */
  openRevisions(requests: readonly OpenRevisionsRequest[], context: CallContext): Promise<readonly (readonly OpenedRevision[])[]>
  updateDocuments(request: UpdateDocumentsRequest, context: CallContext): Promise<UpdateDocumentsReply>
  storeRevisions(request: StoreRevisionsRequest, context: CallContext): Promise<StoreRevisionsReply>
  diffRevisions(requests: readonly { readonly id: string; readonly revisions: readonly string[] }[], context: CallContext): Promise<readonly ReplicaDiff[]>
  scanDocuments(request: ScanDocumentsRequest, context: CallContext): AsyncIterable<readonly DocumentRow[]>
  /** Live documents with an id before `before` (byte order), or all when absent. */
  countDocuments(request: { readonly before?: IdBound; readonly descending: boolean }, context: CallContext): Promise<number>
  scanChanges(request: ScanChangesRequest, context: CallContext): AsyncIterable<readonly ChangeRow[]>
  /** Documents whose last change has a sequence greater than `since`: exact for 0 and within `countedChangesMin` of the newest, an estimate else. */
  countChanges(since: number, context: CallContext): Promise<number>
  /**
   * Resolves with where the replica stands once that differs from `seen`: its sequence is greater, or its
   * history another. Nobody has to ask again and again: the timeout may be long.
   */
  waitForChange(seen: ReplicaCheckpoint, context: CallContext): Promise<ReplicaCheckpoint>
  /**
   * For a reader who has read other replicas up to these places, all at once: behind which own sequence to go on.
   * What is not to be found there was read, unless only a replica that is lost for good had a later revision of it.
   * 0 where nothing is known.
   */
  translateCheckpoints(read: readonly ReplicaCheckpoint[], context: CallContext): Promise<number>
  /** In order. A deleted one comes with `body: null`, so that its stamp can be compared; null: never seen. Large ones like `openRevisions`. */
  openLocalDocuments(ids: readonly string[], context: CallContext): Promise<readonly (LocalDocument | null)[]>
  updateLocalDocument(request: UpdateLocalDocumentRequest, context: CallContext): Promise<UpdateLocalDocumentReply>
  scanLocalDocuments(request: ScanLocalDocumentsRequest, context: CallContext): AsyncIterable<readonly LocalDocument[]>
  /** Removes revisions that are leaves, and ancestors that have no other child. Recorded also where nothing was found. */
  purgeDocuments(request: PurgeDocumentsRequest, context: CallContext): Promise<PurgeDocumentsReply>
  /** Recorded purges with a sequence greater than `since`, oldest first. */
  scanPurges(since: number, context: CallContext): AsyncIterable<readonly PurgeRow[]>
  /** Forgets the records up to a sequence: every replica has applied these purges. */
  trimPurges(sequence: number, context: CallContext): Promise<void>
  partitionInfo(partition: string, context: CallContext): Promise<PartitionInfo>
  /** Begins to drop the bodies of replaced revisions, unless that runs already; resolves at once. */
  compactShard(context: CallContext): Promise<void>
  /** `clear`: forgets them first; new changes begin a new span. */
  timeSpans(request: { readonly clear: boolean }, context: CallContext): Promise<readonly TimeSpan[]>
  replicaInfo(context: CallContext): Promise<ReplicaInfo>
  digestDocuments(bucketCount: number, context: CallContext): Promise<DigestBuckets>
  /** The documents of one bucket in the byte order of UTF-8 of their ids. */
  scanDigestBucket(bucketCount: number, bucket: number, context: CallContext): AsyncIterable<readonly DocumentLeaves[]>
  /**
   * Keeps content for the documents that will name it; whoever names content that is not there is refused with
   * `missing_blob`. Durable when resolved, and kept for at least ten minutes although nothing names it yet.
   * Takes one chunk after the other; `timeoutMs` bounds each wait for the replica, not the whole.
   * When `chunks` throws, nothing is left behind and the call rejects. Chunks must not change any more.
   */
  writeBlob(chunks: AsyncIterable<Uint8Array>, context: CallContext): Promise<WrittenBlob>
  /** Fails with `missing_blob`, or with `damaged_blob` in place of the first bytes that are not what was written. */
  readBlob(hash: string, span: BlobSpan | null, context: CallContext): AsyncIterable<Uint8Array>
  /** Which of the blobs are there; those are kept as after `writeBlob`. */
  hasBlobs(hashes: readonly string[], context: CallContext): Promise<readonly boolean[]>
}

export type ReplicaErrorCode =
  | 'unreachable' // no link to the node, or it broke during the call: the outcome of a write is unknown
  | 'timeout' // no answer within the deadline: the outcome of a write is unknown
  | 'cancelled' // the caller's signal
  | 'not_hosted' // that node has no such replica (yet, or any more)
  | 'other_history' // the call named another life of the replica (`CallContext.history`): nothing was done
  | 'position_expired' // purges behind the sequence from which the call reads are forgotten: read from 0
  | 'overloaded' // a bounded queue is full: nothing was done, try later
  | 'storage' // the disk failed or is full: nothing of this call was acknowledged
  | 'closed' // the replica or its node is shutting down
  | 'protocol' // the peer broke the protocol
  | 'missing_blob' // content that the call reads, or that its revisions name, is not on that node: nothing was done
  | 'damaged_blob' // content on that node's disk is not what was written

const nothingDoneCodes: ReadonlySet<ReplicaErrorCode> = new Set<ReplicaErrorCode>(['not_hosted', 'overloaded', 'missing_blob'])

/** Why a call on a replica failed as a whole. */
export class ReplicaError extends Error {
  readonly code: ReplicaErrorCode
  /** True: the call certainly wrote nothing and never will. False: the outcome of a write is unknown. */
  readonly nothingDone: boolean

  /** @param options `nothingDone`: default by the code */
  constructor(code: ReplicaErrorCode, message: string, options?: { readonly cause?: unknown; readonly nothingDone?: boolean }) {
    super(message, options)
    this.name = 'ReplicaError'
    this.code = code
    this.nothingDone = options?.nothingDone ?? nothingDoneCodes.has(code)
  }
}
