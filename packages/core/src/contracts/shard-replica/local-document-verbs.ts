/** Local documents (`_local/`): they have no revision tree and no place in the changes that clients see. */
import { call, pages, type VerbsOf } from '../verb-table.ts'
import type { IdScan } from './id-scan.ts'

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

export type ScanLocalDocumentsRequest = IdScan

export const localDocumentVerbs = {
  /**
   * Answers in order. A deleted document comes with `body: null`, so that its stamp can be compared; null: the replica
   * never saw the document. Large documents limit the reply as in `openRevisions`.
   */
  openLocalDocuments: call<readonly string[], readonly (LocalDocument | null)[]>(),
  updateLocalDocument: call<UpdateLocalDocumentRequest, UpdateLocalDocumentReply>(),
  scanLocalDocuments: pages<ScanLocalDocumentsRequest, LocalDocument>(),
}

export interface LocalDocumentReplica extends VerbsOf<typeof localDocumentVerbs> {}
