/** The edit of one document: what it is based on, how it is written, and what the client is told. */
import { ApiError, type AttachmentRecord } from '@sectional/core'
import type { OperationContext } from '@sectional/cluster'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { documentWrite, requireWritten, writeQuorum } from './document-writing.ts'

/** One edit on its way to the coordinator. */
export interface Edit {
  readonly id: string
  readonly parent: string | null
  readonly deleted: boolean
  readonly body: Uint8Array
  readonly attachments?: readonly AttachmentRecord[]
}

export interface Written { readonly revision: string; readonly accepted: boolean }

/** The document to which an edit of its attachments applies. */
export interface EditBase {
  readonly body: Uint8Array
  readonly deleted: boolean
  readonly attachments: readonly AttachmentRecord[]
}

const nothing: EditBase = { body: Buffer.from('{}'), deleted: false, attachments: [] }
/** All replicas: an attachment must not seem to be missing because one of them lags. */
const everyReplica = 1000

/**
 * Writes one edit.
 *
 * @param context of the coordinator's call: the request's, or one that outlives the request (`batch=ok`)
 * @throws ApiError `conflict`, or what the coordinator could not do
 */
export async function update(
  edit: Edit, request: RequestContext, services: Services, context: OperationContext,
): Promise<Written> {
  const write = documentWrite(edit.id, edit.parent, edit.deleted, edit.body, edit.attachments)
  const [outcome] = await services.coordinator.updateDocuments(request.database, [write], {
    w: writeQuorum(request), partitionBytesMax: services.options.partitionBytesMax,
  }, context)
  return requireWritten(outcome!)
}

/** The answer's body when a document was written. */
export function writtenBody(id: string, revision: string): string {
  return `{"ok":true,"id":${JSON.stringify(id)},"rev":${JSON.stringify(revision)}}`
}

/**
 * Opens the revision that an attachment is added to.
 *
 * @param parent the revision that the client named; null: none, then the document must not exist or be deleted, and
 * begins anew
 * @throws ApiError `conflict` when no revision is named and the document exists, `missing_rev` when the named one is
 * unknown
 */
export async function openBase(
  id: string, parent: string | null, request: RequestContext, services: Services,
): Promise<EditBase> {
  const { coordinator } = services
  if (parent === null) {
    const opened = await coordinator.openDocument(request.database, id, { body: false }, request)
    if (opened !== null && !opened.leaves[0]!.deleted) throw new ApiError('conflict')
    return nothing
  }
  const [found] = await coordinator.openRevisions(request.database, id, { revisions: [parent], latest: false, r: everyReplica }, request) ?? []
  if (found?.kind !== 'found') throw new ApiError('missing_rev')
  const { body, deleted, attachments = [] } = found.revision
  return { body, deleted, attachments }
}
