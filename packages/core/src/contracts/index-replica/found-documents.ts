/** What `find` reads, and its answer: the documents of one replica that match a selector, in the order of a source. */
import type { AttachmentRecord, Leaf } from '../shard-replica/document-revision.ts'
import type { DocumentReplica } from '../shard-replica/document-verbs.ts'
import type { IdBound } from '../shard-replica/id-scan.ts'
import type { RowRange, ScannedPlace } from './index-rows.ts'
import type { IndexHead, RequiredSequence } from './index-state.ts'

/** The verbs of a replica by which `find` reads its documents. */
export type ReadDocuments = Pick<DocumentReplica, 'openDocument' | 'scanDocuments'>

/**
 * The documents that have a row with one key in a second index of the kind `query`, by which the rows of the first one
 * are filtered before documents are read. It changes what is read and not what is found: a replica leaves the filter
 * out when it does not have the second index, or cannot bring it up to date at once.
 */
export interface RowsOfKey {
  /** The id of the second index (`indexId`). */
  readonly index: string
  /** A whole key: rows with the same key are in the order of their documents' ids. */
  readonly key: string
}

/** What is examined, one after the other. */
export type FindSource =
  /** The rows of an index of the kind `query`. The members are as in `IndexRead`. */
  | {
    readonly kind: 'index'
    readonly index: string
    readonly through: RequiredSequence
    readonly ranges: readonly RowRange[]
    /** Each match has such a row, so the documents of other rows need not be read. */
    readonly within?: RowsOfKey
  }
  /** All live documents by id. `start` and `end` are in the direction of the read: descending, `start` is greater. */
  | { readonly kind: 'documents'; readonly start?: IdBound; readonly end?: IdBound }

export interface FindRequest {
  /** JSON text of a selector that `parseSelector` accepts. */
  readonly selector: string
  readonly source: FindSource
  /** The direction within each range of an index. */
  readonly descending: boolean
  /**
   * Examine only what is strictly behind this place, in the order of the answer: the place of the last row of another
   * answer. The answers of several replicas continue one another so.
   */
  readonly after?: ScannedPlace
  /** The number of matches after which the answer ends. Absent: it ends with the source. */
  readonly limit?: number
  /**
   * What the selector is tested on, and what the answer has of a match:
   * - `winner`: the document with its `_id`, `_rev`, and stubs of its `_attachments`. The answer has the body.
   * - `leaves`: the same with `_conflicts`, where there are some. The answer also has all leaves.
   * - `none`: nothing of the document is returned but its revision. With an index, the selector is tested on the fields
   *   of the row and the `_id`, no document is read, and the answer has no revisions. The index must have all fields
   *   that the selector names.
   */
  readonly documents: 'none' | 'winner' | 'leaves'
  /** Count the matches (`FindProgress.matches`), and do not list them. The answer has no `FoundDocument`. */
  readonly countOnly?: boolean
  /**
   * Aggregate the matches (`FindProgress.groups`), and do not list them: JSON text that `parseAggregateQuery` accepts.
   * With an index and `documents: 'none'`, the index must have all fields that it names, too.
   */
  readonly aggregate?: string
  /**
   * All rows in the ranges of the index are known to match. With `documents: 'none'`, rows that agree in all fields of
   * `aggregate` may then be counted in place of reading each of them; they are examined as one key.
   */
  readonly isExact?: boolean
}

/**
 * A document that matches. Its place is that of its row in the index. In an answer over documents, a place has the
 * document's id, range 0, number 0 and an empty key.
 */
export interface FoundDocument extends ScannedPlace {
  readonly kind: 'found'
  /** The row's value as the indexer encoded it (`decodeViewRow`). Empty in an answer over documents. */
  readonly value: Uint8Array
  /** The winner's revision. Absent when only the row of an index was read. */
  readonly revision?: string
  /** Present unless `FindRequest.documents` is `none`. */
  readonly body?: Uint8Array
  /** The attachments of the winner. Present only together with `body`. */
  readonly attachments?: readonly AttachmentRecord[]
  /** All leaves, winner first. Present when `FindRequest.documents` is `leaves`. */
  readonly leaves?: readonly Leaf[]
}

/** Everything up to this place was examined. The numbers are those since the previous progress row of the answer. */
export interface FindProgress extends ScannedPlace {
  readonly kind: 'progress'
  /** Rows of the index, or ids. */
  readonly keysExamined: number
  /** Documents that were read. */
  readonly documentsExamined: number
  readonly matches: number
  /**
   * The aggregated matches since the previous progress row, as `Aggregation.encode` returns them. Absent: there were
   * none, or the request has no `aggregate`.
   */
  readonly groups?: Uint8Array
}

/** An answer over an index begins with its head. An answer over documents has no head. */
export type FindRow = IndexHead | FoundDocument | FindProgress

/** An answer has a progress row after this many examined keys at the latest. */
export const progressKeysMax = 1000
/** An answer has a progress row after this many milliseconds at the latest, while its reader takes the pages. */
export const progressMsMax = 500
