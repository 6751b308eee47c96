/**
 * What a node does for one client request, as a table of contents: each verb has a file of its own beside
 * this one. `http` knows documents only through this.
 */
import type {
  AttachmentRecord, BlobSpan, Branch, ChangeRow, HashRange, Leaf, LocalDocument, OpenedRevision, OpenRevisionsRequest, PartitionInfo, RevisionsDiff, Since, WrittenBlob,
} from '@sectional/core'
import type { DatabaseRecord } from '../control/cluster-state.ts'

/** The client request that an operation of the coordinator serves. */
export interface OperationContext {
  /** Logs on every node carry it. */
  readonly requestId: string
  /** Aborts when the client is gone. */
  readonly signal: AbortSignal
}

/** r of one read; undefined: a majority. Values above n can never be met, below 1 act as 1. */
export interface ReadOptions { readonly r?: number }
/** w of one write; undefined: a majority. */
export interface WriteOptions {
  readonly w?: number
  /** Bytes of JSON in one partition of a partitioned database from which on it only takes deletions. */
  readonly partitionBytesMax?: number
}

export interface OpenDocumentOptions extends ReadOptions {
  /** Send every branch (`revs`, `revs_info`). */
  readonly tree?: boolean
  /** false: only the leaves. */
  readonly body?: boolean
}

/** The winner of the merged answers. */
export interface OpenedDocument {
  /** Winner first. */
  readonly leaves: readonly Leaf[]
  readonly sequence: number
  /** The winner's; absent when not asked for, or when its body was lost. */
  readonly body?: Uint8Array
  /** With the body. */
  readonly attachments?: readonly AttachmentRecord[]
  readonly tree?: readonly Branch[]
}

/** An edit as the client wrote it. */
export interface DocumentWrite {
  readonly id: string
  /** The revision that the edit replaces, or null. */
  readonly parent: string | null
  readonly deleted: boolean
  /** JSON object text without special members. */
  readonly body: Uint8Array
  /** MD5 of the edit made on `parent` (core `revisionHash`). */
  readonly revisionHash: string
  /** All that the new revision has; their content was written before (`writeBlob`, or it is another revision's of the document). */
  readonly attachments?: readonly AttachmentRecord[]
}

/** A revision given with its history (`new_edits=false`). */
export interface ReplicatedWrite {
  readonly id: string
  readonly path: { readonly start: number; readonly ids: readonly string[] }
  readonly deleted: boolean
  readonly body: Uint8Array
  readonly attachments?: readonly AttachmentRecord[]
}

/** `accepted`: durable on at least one replica, but on fewer than w (202). */
export type WriteOutcome =
  | { readonly kind: 'written'; readonly revision: string; readonly accepted: boolean }
  | { readonly kind: 'conflict' }
  | { readonly kind: 'error'; readonly error: string; readonly reason: string; readonly status: number }

export interface ListDocumentsOptions {
  /** First and last in the direction of the list; both inclusive unless said. */
  readonly start?: { readonly id: string; readonly inclusive: boolean }
  readonly end?: { readonly id: string; readonly inclusive: boolean }
  readonly descending: boolean
  readonly skip: number
  readonly limit: number | null
  readonly body: boolean
  readonly leaves: boolean
  /** Ask only the shard of this partition. */
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
  /** Live documents in the database (or the partition). */
  readonly total: number
  /** Position of the first row. */
  readonly offset: number
  readonly rows: AsyncIterable<readonly ListedDocument[]>
}

/** Revisions of one document that are to go without a trace. */
export interface PurgeRequest { readonly id: string; readonly revisions: readonly string[] }

/** `accepted`: recorded on at least one replica, but on fewer than w. */
export interface PurgeOutcome { readonly kind: 'purged'; readonly revisions: readonly string[]; readonly accepted: boolean }

/** A recorded purge. */
export interface PurgedInfo { readonly id: string; readonly revisions: readonly string[] }

/** How many changes one replica recorded from a time on (milliseconds since 1970) until the next, oldest first. */
export interface ReplicaTimes { readonly range: HashRange; readonly node: string; readonly spans: readonly { readonly begin: number; readonly count: number }[] }

export interface DatabaseInfo {
  readonly updateSequence: string
  readonly purgeSequence: string
  readonly documentCount: number
  readonly deletedCount: number
  /** One of the replicas that were asked drops old bodies. */
  readonly compactRunning: boolean
  readonly sizes: { readonly file: number; readonly active: number; readonly external: number }
}

/** What tells one state of a database from another. */
export interface DatabaseState {
  /** Usable as `since`: where one replica of each shard stands now. @throws ApiError when it does not answer any more */
  readonly updateSequence: () => Promise<string>
  /** The same on every node while nothing is written, as long as the same replicas answer. */
  readonly fingerprint: string
}

export interface ChangesOptions {
  /** A token of another database, or one whose replicas are all gone, means the start. */
  readonly since: Exclude<Since, { readonly kind: 'malformed' }>
  /** From the newest on; `since` and `follow` count for nothing. */
  readonly descending: boolean
  /** Rows that the reader will take at most; null: it cannot tell. */
  readonly limit: number | null
  readonly body: boolean
  /** Go on with what is written later, until `end` or `close`. */
  readonly follow: boolean
}

/** Rows of one shard, in its order; or: everything there is has been read, and what comes later is waited for. */
export type ChangesEvent =
  | { readonly kind: 'rows'; readonly place: number; readonly rows: readonly ChangeRow[] }
  | { readonly kind: 'caught-up' }

/**
 * A reader's place in the changes of a database. Each document appears at its latest change; at least once for
 * every change behind `since`, also when replicas fail on the way. At most a page of each shard is held.
 */
export interface ChangesFeed {
  /**
   * null: nothing is left (without `follow`), or `end` was called.
   * @throws ApiError when a shard has no replica left
   */
  next(): Promise<ChangesEvent | null>
  /** Moves the place behind a row of the last event. To be called for each row in order, until the reader stops. */
  take(event: ChangesEvent & { readonly kind: 'rows' }, row: ChangeRow): void
  /** The token of the place. */
  token(): string
  /** Rows behind the place; an estimate while more than `countedChangesMin` sequences of a shard are left. */
  pending(): Promise<number>
  /** Lets `next` give null, now and later. The place stays. */
  end(): void
  /** Ends everything at every node. */
  close(): Promise<void>
}

export type LocalWriteOutcome =
  | { readonly kind: 'written'; readonly revision: number; readonly accepted: boolean }
  | { readonly kind: 'missing' }

/**
 * Every verb throws ApiError when too few replicas answer: `service_unavailable` with Retry-After when no replica of a
 * shard can be reached ("No DB shards could be opened."), when all that answered are overloaded, or when content of an
 * attachment can only be on replicas that do not answer; `timeout` when all stay silent; `internal_server_error` when
 * they fail.
 */
export interface Coordinator {
  openDocument(db: DatabaseRecord, id: string, options: OpenDocumentOptions, context: OperationContext): Promise<OpenedDocument | null>
  /** `revisions: 'leaves'` of an unknown document: null. */
  openRevisions(db: DatabaseRecord, id: string, request: { readonly revisions: readonly string[] | 'leaves'; readonly latest: boolean } & ReadOptions, context: OperationContext): Promise<readonly OpenedRevision[] | null>
  /** The same for many documents, in order, with few calls; undefined: to be asked for again, since others have many bytes already. The first is always given. */
  openManyRevisions(db: DatabaseRecord, requests: readonly OpenRevisionsRequest[], options: ReadOptions, context: OperationContext): Promise<readonly (readonly OpenedRevision[] | null | undefined)[]>
  /** One outcome per write, in order; the same id twice is processed in order. */
  updateDocuments(db: DatabaseRecord, writes: readonly DocumentWrite[], options: WriteOptions, context: OperationContext): Promise<readonly WriteOutcome[]>
  /** One outcome per revision, in order. */
  storeRevisions(db: DatabaseRecord, writes: readonly ReplicatedWrite[], options: WriteOptions, context: OperationContext): Promise<readonly WriteOutcome[]>
  diffRevisions(db: DatabaseRecord, requests: readonly { readonly id: string; readonly revisions: readonly string[] }[], context: OperationContext): Promise<readonly RevisionsDiff[]>
  listDocuments(db: DatabaseRecord, options: ListDocumentsOptions, context: OperationContext): Promise<DocumentList>
  /** Leaves (and the winner's body) of each id, null for unknown ones, in order. One replica answers each. */
  openDocuments(db: DatabaseRecord, ids: readonly string[], options: { readonly body: boolean }, context: OperationContext): Promise<readonly (OpenedDocument | null)[]>
  /** id without `_local/`. */
  openLocalDocument(db: DatabaseRecord, id: string, options: ReadOptions, context: OperationContext): Promise<LocalDocument | null>
  /** `revision` is N of the new `0-N`; `body: null` deletes. */
  updateLocalDocument(db: DatabaseRecord, write: { readonly id: string; readonly revision: number; readonly body: Uint8Array | null; readonly mustExist: boolean }, options: WriteOptions, context: OperationContext): Promise<LocalWriteOutcome>
  listLocalDocuments(db: DatabaseRecord, options: ListDocumentsOptions, context: OperationContext): Promise<{ readonly rows: AsyncIterable<readonly LocalDocument[]> }>
  /**
   * Streams content for an attachment of a document that is written next, to every replica at once. Kept for at least ten
   * minutes; content that no document names goes by itself. Rejects with what `chunks` throws.
   */
  writeBlob(db: DatabaseRecord, id: string, chunks: AsyncIterable<Uint8Array>, options: WriteOptions, context: OperationContext): Promise<WrittenBlob>
  /** The stored bytes of an attachment of the document; `span: null`: all of them. */
  readBlob(db: DatabaseRecord, id: string, attachment: AttachmentRecord, span: BlobSpan | null, context: OperationContext): AsyncIterable<Uint8Array>
  /** Keeps what was written for a document for ten minutes more. */
  keepBlobs(db: DatabaseRecord, id: string, hashes: readonly string[], context: OperationContext): Promise<void>
  /** Brings content of one document to where another one lives, so that it may be named there. */
  shareBlobs(db: DatabaseRecord, fromId: string, toId: string, hashes: readonly string[], context: OperationContext): Promise<void>
  /** One outcome per request, in order: which of the revisions were leaves and are gone. */
  purgeDocuments(db: DatabaseRecord, requests: readonly PurgeRequest[], options: WriteOptions, context: OperationContext): Promise<readonly PurgeOutcome[]>
  /** The purges that are still recorded, in no order. */
  purgedInfos(db: DatabaseRecord, context: OperationContext): Promise<readonly PurgedInfo[]>
  partitionInfo(db: DatabaseRecord, partition: string, context: OperationContext): Promise<PartitionInfo>
  /** Starts the compaction of every replica that is up. */
  compactDatabase(db: DatabaseRecord, context: OperationContext): Promise<void>
  /** Of every replica that is up. `clear`: they forget it first. */
  timeSpans(db: DatabaseRecord, clear: boolean, context: OperationContext): Promise<readonly ReplicaTimes[]>
  databaseInfo(db: DatabaseRecord, context: OperationContext): Promise<DatabaseInfo>
  databaseState(db: DatabaseRecord, context: OperationContext): Promise<DatabaseState>
  /** To be closed by its caller, also after a failure. */
  openChanges(db: DatabaseRecord, options: ChangesOptions, context: OperationContext): Promise<ChangesFeed>
  /** Starts one pass of anti-entropy for every pair of replicas (`_sync_shards`). */
  synchronize(db: DatabaseRecord): void
}
