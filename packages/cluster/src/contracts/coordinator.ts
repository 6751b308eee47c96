/**
 * The operations of a node for one client request, as a table of contents: operations on documents, lists, feeds and
 * attachments have a file each in `coordinator/`, those on views in `views/`, and queries by selector in `find/`. The
 * package `http` reaches documents only through this interface.
 */
import type {
  AttachmentRecord, BlobSpan, Branch, ChangeRow, HashRange, IndexDefinition, IndexEstimate, IndexRow, Leaf,
  LocalDocument, OpenedRevision, OpenRevisionsRequest, PartitionInfo, RevisionsDiff, Since, ViewTrial, WrittenBlob,
} from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'
import type { DesignDocument, DesignDocuments } from './design-document.ts'
import type {
  AggregatedMatches, CountQuery, FindAnswer, FindQuery, IndexRanges, MatchAggregation, MatchCount,
} from './find-query.ts'
import type { ReduceQuery, ViewAnswer, ViewGroup, ViewInfo, ViewQuery } from './view-query.ts'

/** The client request that an operation of the coordinator serves. */
export interface OperationContext {
  /** Appears in the log lines of all nodes. */
  readonly requestId: string
  /** Aborts when the client has disconnected. */
  readonly signal: AbortSignal
  /** Address of the client, for records of what it did. Absent: the node itself causes the operation. */
  readonly clientAddress?: string
}

/** The r of one read; undefined: a majority. Values above n can never be met; values below 1 act as 1. */
export interface ReadOptions { readonly r?: number }

/** Which revisions of a document are opened. */
export interface RevisionsRequest extends ReadOptions {
  readonly revisions: readonly string[] | 'leaves'
  readonly latest: boolean
  /**
   * Named revisions are reported as missing only if a majority of the replicas has answered that it lacks them. Not
   * for `latest` and `'leaves'`.
   */
  readonly majority?: boolean
}

/** The user for whom a document is written. */
export interface WriteUser {
  /** null: not logged in. */
  readonly name: string | null
  readonly roles: readonly string[]
}

export interface WriteOptions {
  /** The number of replicas that must have the write on disk. Undefined: a majority. */
  readonly w?: number
  /**
   * The user whose write must pass the validation functions of the database. Undefined: the node itself writes, or the
   * write was validated before (`validateDocuments`), and nothing is validated.
   */
  readonly user?: WriteUser
  /** Bytes of JSON in one partition of a partitioned database, above which only deletions are accepted. */
  readonly partitionBytesMax?: number
}

export interface OpenDocumentOptions extends ReadOptions {
  /** Return every branch (`revs`, `revs_info`). */
  readonly tree?: boolean
  /** When false, only the leaves are returned. */
  readonly body?: boolean
}

/** A document with its winner, merged from the answers of the replicas. */
export interface OpenedDocument {
  /** Winner first. */
  readonly leaves: readonly Leaf[]
  readonly sequence: number
  /** The winner's body; absent when it was not requested, or when it was lost. */
  readonly body?: Uint8Array
  /** Present together with the body. */
  readonly attachments?: readonly AttachmentRecord[]
  readonly tree?: readonly Branch[]
}

/** An edit as the client requested it. */
export interface DocumentWrite {
  readonly id: string
  /** The revision that the edit replaces, or null. */
  readonly parent: string | null
  readonly deleted: boolean
  /** Text of a JSON object without special members. */
  readonly body: Uint8Array
  /** MD5 of the edit relative to `parent` (core `revisionHash`). */
  readonly revisionHash: string
  /**
   * All attachments of the new revision. Their content is already stored: `writeBlob` wrote it, or another revision of
   * the document has it.
   */
  readonly attachments?: readonly AttachmentRecord[]
}

/** A revision that comes with its history (`new_edits=false`). */
export interface ReplicatedWrite {
  readonly id: string
  readonly path: { readonly start: number; readonly ids: readonly string[] }
  readonly deleted: boolean
  readonly body: Uint8Array
  readonly attachments?: readonly AttachmentRecord[]
}

/** `accepted`: the write is durable on at least one replica, but on fewer than w (status 202). */
export type WriteOutcome =
  | { readonly kind: 'written'; readonly revision: string; readonly accepted: boolean }
  | { readonly kind: 'conflict' }
  | {
    readonly kind: 'error'
    readonly error: string
    readonly reason: string
    readonly status: number
    /** True when a function of a design document caused the error, and not the node. */
    readonly byFunction?: true
    /** The reason as the function threw it, if it is no text but another JSON value. */
    readonly thrownReason?: unknown
  }

export interface ListDocumentsOptions {
  /** First and last id in the direction of the list, with the `inclusive` of each. */
  readonly start?: { readonly id: string; readonly inclusive: boolean }
  readonly end?: { readonly id: string; readonly inclusive: boolean }
  readonly descending: boolean
  readonly skip: number
  readonly limit: number | null
  readonly body: boolean
  readonly leaves: boolean
  /** Read only the shard of this partition. */
  readonly partition?: string
}

export interface ListedDocument {
  readonly id: string
  readonly revision: string
  readonly body?: Uint8Array
  readonly attachments?: readonly AttachmentRecord[]
  readonly leaves?: readonly Leaf[]
}

export interface DocumentList {
  /** Number of live documents in the database (or the partition). */
  readonly total: number
  /** Position of the first row in the whole list. */
  readonly offset: number
  readonly rows: AsyncIterable<readonly ListedDocument[]>
}

/** Revisions of one document to be removed without a tombstone. */
export interface PurgeRequest { readonly id: string; readonly revisions: readonly string[] }

/** `accepted`: the purge is recorded on at least one replica, but on fewer than w. */
export interface PurgeOutcome {
  readonly kind: 'purged'
  readonly revisions: readonly string[]
  readonly accepted: boolean
}

/** A recorded purge. */
export interface PurgedInfo { readonly id: string; readonly revisions: readonly string[] }

/**
 * The changes of one replica, oldest first: `count` changes were recorded from `begin` (milliseconds since 1970) until
 * the beginning of the next span.
 */
export interface ReplicaTimes {
  readonly range: HashRange
  readonly node: string
  readonly spans: readonly { readonly begin: number; readonly count: number }[]
}

export interface DatabaseInfo {
  readonly updateSequence: string
  readonly purgeSequence: string
  readonly documentCount: number
  readonly deletedCount: number
  /**
   * True when one of the asked replicas is being compacted, or any replica after a request of a client of this node.
   */
  readonly compactRunning: boolean
  readonly sizes: { readonly file: number; readonly active: number; readonly external: number }
}

/** Distinguishes states of a database. */
export interface DatabaseState {
  /**
   * Returns a value for `since`: the current checkpoint of one replica of each shard.
   * @throws ApiError when that replica does not answer any more
   */
  readonly updateSequence: () => Promise<string>
  /** Equal on all nodes while nothing is written and the same replicas answer. */
  readonly fingerprint: string
}

export interface ChangesOptions {
  /** A token of another database, or one that names no existing replica, means the start. */
  readonly since: Exclude<Since, { readonly kind: 'malformed' }>
  /** Rows from the newest to the oldest. `since` and `follow` are then ignored. */
  readonly descending: boolean
  /** Largest number of rows that the reader takes; null when it does not know. */
  readonly limit: number | null
  readonly body: boolean
  /** Continue with later changes, until `end` or `close`. */
  readonly follow: boolean
}

/**
 * `rows`: rows of one shard, in the shard's order. `caught-up`: all present rows were read, and the feed waits for
 * changes.
 */
export type ChangesEvent =
  | { readonly kind: 'rows'; readonly place: number; readonly rows: readonly ChangeRow[] }
  | { readonly kind: 'caught-up' }

/**
 * A reader's position in the changes of a database. Each document appears at its latest change. Every change after
 * `since` is returned at least once, even if replicas fail meanwhile. The feed holds at most one page of each shard.
 */
export interface ChangesFeed {
  /**
   * Returns the next event; null when no rows are left (without `follow`), or after `end`.
   * @throws ApiError when a shard has no replica left
   */
  next(): Promise<ChangesEvent | null>
  /**
   * Moves the position after a row of the last event. The reader must call it for each row in order, until it stops.
   */
  take(event: ChangesEvent & { readonly kind: 'rows' }, row: ChangeRow): void
  /** Returns the token of the current position. */
  token(): string
  /**
   * Returns the number of rows after the position. It is an estimate while more than `countedChangesMin` sequences of a
   * shard are left.
   */
  pending(): Promise<number>
  /** Makes `next` return null, now and later. The position is kept. */
  end(): void
  /** Ends all calls and waits of the feed, on every node. */
  close(): Promise<void>
}

export type LocalWriteOutcome =
  | { readonly kind: 'written'; readonly revision: number; readonly accepted: boolean }
  | { readonly kind: 'missing' }

/**
 * Every operation throws ApiError when too few replicas answer:
 * - `service_unavailable` with Retry-After when no replica of a shard can be reached ("No DB shards could be opened."),
 *   when all that answered are overloaded, or when content of an attachment can only be on replicas that do not answer;
 * - `timeout` when all replicas are silent;
 * - `internal_server_error` when they fail.
 */
export interface Coordinator {
  openDocument(
    db: DatabaseRecord, id: string, options: OpenDocumentOptions, context: OperationContext,
  ): Promise<OpenedDocument | null>
  /**
   * Returns null for `revisions: 'leaves'` of an unknown document.
   *
   * @throws ApiError `service_unavailable` with `Retry-After` when no replica answers, or, with `majority`, fewer
   *   replicas than a majority and a revision was not found
   */
  openRevisions(
    db: DatabaseRecord, id: string, request: RevisionsRequest, context: OperationContext,
  ): Promise<readonly OpenedRevision[] | null>
  /**
   * Like `openRevisions` for many documents, in order, with few calls. Undefined elements must be requested again,
   * because the answer already has many bytes. The first element is never undefined.
   */
  openManyRevisions(
    db: DatabaseRecord, requests: readonly OpenRevisionsRequest[], options: ReadOptions, context: OperationContext,
  ): Promise<readonly (readonly OpenedRevision[] | null | undefined)[]>
  /**
   * Returns a design document from the cache of this node, or null when there is none. `id` includes `_design/`. After
   * this node has answered a write of the document, the result is the written revision or a later one. Writes through
   * other nodes appear when a notice arrives, normally within milliseconds, and after five seconds at most while a
   * majority of the replicas answers.
   */
  designDocument(db: DatabaseRecord, id: string): Promise<DesignDocument | null>
  /** Returns all design documents of a database, like `designDocument`. */
  designDocuments(db: DatabaseRecord): Promise<DesignDocuments>
  /**
   * Validates edits as `updateDocuments` does, without writing them.
   *
   * @returns for each edit why it is refused; undefined if it passed
   * @throws ApiError `service_unavailable` when the functions are not known or cannot be called
   */
  validateDocuments(
    db: DatabaseRecord, writes: readonly DocumentWrite[], user: WriteUser, context: OperationContext,
  ): Promise<readonly (WriteOutcome | undefined)[]>
  /** Returns one outcome per write, in order. Two writes of the same id are processed in order. */
  updateDocuments(
    db: DatabaseRecord, writes: readonly DocumentWrite[], options: WriteOptions, context: OperationContext,
  ): Promise<readonly WriteOutcome[]>
  /** Returns one outcome per revision, in order. */
  storeRevisions(
    db: DatabaseRecord, writes: readonly ReplicatedWrite[], options: WriteOptions, context: OperationContext,
  ): Promise<readonly WriteOutcome[]>
  diffRevisions(
    db: DatabaseRecord, requests: readonly { readonly id: string; readonly revisions: readonly string[] }[],
    context: OperationContext,
  ): Promise<readonly RevisionsDiff[]>
  listDocuments(db: DatabaseRecord, options: ListDocumentsOptions, context: OperationContext): Promise<DocumentList>
  /**
   * Returns the leaves (and the winner's body) of each id, in order; null for unknown ids. Each document is read from
   * one replica.
   */
  openDocuments(
    db: DatabaseRecord, ids: readonly string[], options: { readonly body: boolean }, context: OperationContext,
  ): Promise<readonly (OpenedDocument | null)[]>
  /** `id` is without `_local/`. */
  openLocalDocument(
    db: DatabaseRecord, id: string, options: ReadOptions, context: OperationContext,
  ): Promise<LocalDocument | null>
  /** The `revision` of the outcome is N of the new `0-N`. `body: null` deletes the document. */
  updateLocalDocument(
    db: DatabaseRecord,
    write: {
      readonly id: string; readonly revision: number; readonly body: Uint8Array | null; readonly mustExist: boolean
    },
    options: WriteOptions, context: OperationContext,
  ): Promise<LocalWriteOutcome>
  listLocalDocuments(
    db: DatabaseRecord, options: ListDocumentsOptions, context: OperationContext,
  ): Promise<{ readonly rows: AsyncIterable<readonly LocalDocument[]> }>
  /**
   * Streams content of an attachment to all replicas at the same time; the document that references it is written next.
   * The content is kept for the time of a lease (`writeBlob` of `BlobReplica`); content that no document references is
   * removed afterwards. Rejects with the error of `chunks`.
   */
  writeBlob(
    db: DatabaseRecord, id: string, chunks: AsyncIterable<Uint8Array>, options: WriteOptions, context: OperationContext,
  ): Promise<WrittenBlob>
  /** Returns the stored bytes of an attachment of the document; `span: null` means all of them. */
  readBlob(
    db: DatabaseRecord, id: string, attachment: AttachmentRecord, span: BlobSpan | null, context: OperationContext,
  ): AsyncIterable<Uint8Array>
  /** Renews the lease of content that was written for a document. */
  keepBlobs(db: DatabaseRecord, id: string, hashes: readonly string[], context: OperationContext): Promise<void>
  /** Copies content of one document to the shard of another one, so that this one may reference it. */
  shareBlobs(
    db: DatabaseRecord, fromId: string, toId: string, hashes: readonly string[], context: OperationContext,
  ): Promise<void>
  /** Returns one outcome per request, in order. Each lists the revisions that were leaves and have been removed. */
  purgeDocuments(
    db: DatabaseRecord, requests: readonly PurgeRequest[], options: WriteOptions, context: OperationContext,
  ): Promise<readonly PurgeOutcome[]>
  /** Returns the purges that are still recorded, in no particular order. */
  purgedInfos(db: DatabaseRecord, context: OperationContext): Promise<readonly PurgedInfo[]>
  partitionInfo(db: DatabaseRecord, partition: string, context: OperationContext): Promise<PartitionInfo>
  /** Starts a compaction of every replica that is up. */
  compactDatabase(db: DatabaseRecord, context: OperationContext): Promise<void>
  /** Returns the time spans of every replica that is up. With `clear`, the replicas first delete the spans. */
  timeSpans(db: DatabaseRecord, clear: boolean, context: OperationContext): Promise<readonly ReplicaTimes[]>
  databaseInfo(db: DatabaseRecord, context: OperationContext): Promise<DatabaseInfo>
  databaseState(db: DatabaseRecord, context: OperationContext): Promise<DatabaseState>
  /** The caller must close the feed, even after a failure. */
  openChanges(db: DatabaseRecord, options: ChangesOptions, context: OperationContext): Promise<ChangesFeed>
  /**
   * Returns the documents that match a selector.
   *
   * @throws IndexBehindError when an index was not built within `timeoutMs`; ApiError `too_large` when a sort in memory
   * needs more than it may. Errors of reads reject `matches`
   */
  find(db: DatabaseRecord, query: FindQuery, context: OperationContext): Promise<FindAnswer>
  /** Counts the documents that match a selector. @throws IndexBehindError as `find` */
  countMatches(db: DatabaseRecord, query: CountQuery, context: OperationContext): Promise<MatchCount>
  /**
   * Aggregates the documents that match a selector in groups.
   *
   * @throws IndexBehindError as `find`; ApiError `bad_request` when there are too many groups or values
   */
  aggregateMatches(db: DatabaseRecord, query: MatchAggregation, context: OperationContext): Promise<AggregatedMatches>
  /**
   * Estimates the numbers of rows that a query would read of several indexes, in order. An estimate is undefined when
   * the index is not built, or was not read in time. Never rejects.
   *
   * @param scope the partition that the query reads; absent: the whole database
   */
  estimateRows(
    db: DatabaseRecord, candidates: readonly IndexRanges[], scope: { readonly partition?: string },
    context: OperationContext,
  ): Promise<readonly (IndexEstimate | undefined)[]>
  /**
   * Returns rows of a view in the order of its index.
   *
   * @throws IndexBehindError when indexes were not built within `timeoutMs`; ApiError when a shard has no replica left
   */
  scanView(db: DatabaseRecord, query: ViewQuery, context: OperationContext): Promise<ViewAnswer<IndexRow>>
  /**
   * Returns the reduced groups of a view in the order of its index. Without rows there is no group.
   *
   * @throws as `scanView`
   */
  reduceView(
    db: DatabaseRecord, query: Omit<ReduceQuery, 'reduceAgain'>, context: OperationContext,
  ): Promise<ViewAnswer<ViewGroup>>
  /**
   * Runs the functions of a definition over some documents, on this node. It stores nothing.
   *
   * @param documents not deleted, each with the body of its winner
   * @throws ApiError `compilation_error` when a function does not compile, `not_implemented` when this machine runs no
   * functions
   */
  tryView(
    db: DatabaseRecord, definition: IndexDefinition, documents: readonly ChangeRow[], context: OperationContext,
  ): Promise<ViewTrial>
  /** Returns information about the indexes of some definitions. It builds no index. */
  viewInfo(db: DatabaseRecord, definitions: readonly IndexDefinition[], context: OperationContext): Promise<ViewInfo>
  /** Removes the indexes of a database from every replica that is up, except those of the given definitions. */
  cleanViews(db: DatabaseRecord, used: readonly IndexDefinition[], context: OperationContext): Promise<void>
  /** Starts one pass of anti-entropy between each pair of replicas (`_sync_shards`). */
  synchronize(db: DatabaseRecord): void
}
