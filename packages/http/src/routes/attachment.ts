/** Attachment paths. No document can have attachments in this version, so none is ever found, and none can be stored. */
import { ApiError } from '@sectional/core'
import type { RequestContext } from '../request-context.ts'
import type { Services } from '../services.ts'

export async function findNoAttachment(request: RequestContext, services: Services): Promise<void> {
  const opened = await services.coordinator.openDocument(request.database, request.params[0]!, { body: false }, request)
  if (opened === null) throw new ApiError('missing')
  if (opened.leaves[0]!.deleted) throw new ApiError('deleted')
  throw new ApiError('not_found', 'Document is missing attachment')
}
