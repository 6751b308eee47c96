/** Local documents (`_local/`): they have no revision tree and no place in the changes that clients see. */
import { call, pages, type VerbsOf } from '../verb-table.ts'
import type { IdScan } from './id-scan.ts'

/** A local document. Replicas keep the version with the greatest `stamp`, then `revision`, then body bytes. */
export interface LocalDocument {
  /** Without the `_local/` prefix. */
  readonly id: string
  /** N of `0-N`. */
  readonly revision: number
  /** Milliseconds of the deciding replica's clock. Invariant: greater than the stamp of the replaced version. */
  readonly stamp: number
  /** null: deleted. */
  readonly body: Uint8Array | null
}

export interface UpdateLocalDocumentRequest {
  readonly id: string
  /** N of `0-N`. */
  readonly revision: number
  readonly body: Uint8Array | null
  /** For a deletion: answer `missing` when the document does not exist. */
  readonly mustExist: boolean
}

export type UpdateLocalDocumentReply =
  | { readonly kind: 'updated'; readonly document: LocalDocument }
  | { readonly kind: 'missing' }

export type ScanLocalDocumentsRequest = IdScan

export const localDocumentVerbs = {
  /**
   * Answers in the order of the ids. A deleted document is returned with `body: null`, so that the caller can compare
   * its stamp; null: the replica never had the document. Large documents limit the reply as in `openRevisions`.
   */
  openLocalDocuments: call<readonly string[], readonly (LocalDocument | null)[]>(),
  updateLocalDocument: call<UpdateLocalDocumentRequest, UpdateLocalDocumentReply>(),
  scanLocalDocuments: pages<ScanLocalDocumentsRequest, LocalDocument>(),
}

export interface LocalDocumentReplica extends VerbsOf<typeof localDocumentVerbs> {}
