/** Writes one edit of a document: its parent revision, the write, and the response. */
import { ApiError, type AttachmentRecord } from '@sectional/core'
import type { DocumentWrite, OperationContext, WriteUser } from '@sectional/cluster'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { documentWrite, requireWritten, writeQuorum } from './document-writing.ts'

/** One edit that is passed to the coordinator. */
export interface Edit {
  readonly id: string
  readonly parent: string | null
  readonly deleted: boolean
  readonly body: Uint8Array
  readonly attachments?: readonly AttachmentRecord[]
}

export interface Written { readonly revision: string; readonly accepted: boolean }

/** The document whose attachments are edited. */
export interface EditBase {
  readonly body: Uint8Array
  readonly deleted: boolean
  readonly attachments: readonly AttachmentRecord[]
}

const nothing: EditBase = { body: Buffer.from('{}'), deleted: false, attachments: [] }
/** Asks all replicas, so that an attachment is not reported as missing because one replica lags behind. */
const everyReplica = 1000

/**
 * Writes one edit for the user of the request, after its validation.
 *
 * @param context the context of the coordinator's call: the request, or one that outlives the request (`batch=ok`)
 * @throws ApiError `conflict`, the refusal of a validation function, or an error of the coordinator
 */
export async function update(
  edit: Edit, request: RequestContext, services: Services, context: OperationContext,
): Promise<Written> {
  return writeEdit(edit, request, services, context, request.user)
}

/**
 * Validates an edit and returns a function that writes it later without another validation (`batch=ok`).
 *
 * @throws ApiError when a validation function refuses the edit, or when the functions cannot be called
 */
export async function validated(
  edit: Edit, request: RequestContext, services: Services,
): Promise<(context: OperationContext) => Promise<Written>> {
  const write = editWrite(edit)
  const [refusal] = await services.coordinator.validateDocuments(request.database, [write], request.user, request)
  if (refusal?.kind === 'error') requireWritten(refusal)
  return context => refusal === undefined
    ? writeEdit(edit, request, services, context, undefined)
    : Promise.reject(new ApiError('conflict'))
}

async function writeEdit(
  edit: Edit, request: RequestContext, services: Services, context: OperationContext, user: WriteUser | undefined,
): Promise<Written> {
  const [outcome] = await services.coordinator.updateDocuments(request.database, [editWrite(edit)], {
    w: writeQuorum(request), partitionBytesMax: services.options.partitionBytesMax, user,
  }, context)
  return requireWritten(outcome!)
}

function editWrite({ id, parent, deleted, body, attachments }: Edit): DocumentWrite {
  return documentWrite(id, parent, deleted, body, attachments)
}

/** Returns the response body for a document that was written. */
export function writtenBody(id: string, revision: string): string {
  return `{"ok":true,"id":${JSON.stringify(id)},"rev":${JSON.stringify(revision)}}`
}

/**
 * Opens the revision to which an attachment is added.
 *
 * @param parent the revision that the client named. null when it named none: the document must then be absent or
 * deleted, and a new one is created
 * @throws ApiError `conflict` when no revision is named and the document exists, `missing_rev` when the named revision
 * is not stored, `service_unavailable` when too few replicas answer to tell
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
  const wanted = { revisions: [parent], latest: false, r: everyReplica, majority: true }
  const [found] = await coordinator.openRevisions(request.database, id, wanted, request) ?? []
  if (found?.kind !== 'found') throw new ApiError('missing_rev')
  const { body, deleted, attachments = [] } = found.revision
  return { body, deleted, attachments }
}
