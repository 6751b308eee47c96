import { DesignDocument, type OpenedDocument } from '@sectional/cluster'
import { ApiError, designPrefix } from '@sectional/core'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

/**
 * Returns a design document as its replicas have it, although another node may have written it a moment ago. Every
 * reader can ask for it many times, by names that do not exist, so that it is read and parsed only when its revision is
 * not the one in the cache of this node. Requests that come at the same time share this reading.
 *
 * @param name without `_design/`
 * @throws ApiError `missing`, `deleted`; the errors of the coordinator
 */
export async function currentDesignDocument(
  name: string, request: RequestContext, services: Services,
): Promise<DesignDocument> {
  const { coordinator, designReadings } = services
  const { database, requestId, signal } = request
  const id = designPrefix + name
  const cached = await coordinator.designDocument(database, id)
  const opened = existing(await coordinator.openDocument(database, id, { body: false }, request))
  if (cached?.revision === opened.leaves[0]!.revision) return cached
  const read = await designReadings.share(`${database.incarnation} ${id}`, async () => {
    const { leaves, body, attachments } = existing(
      await coordinator.openDocument(database, id, {}, { requestId, signal: neverAborted }),
    )
    if (body === undefined) throw new ApiError('missing')
    return new DesignDocument(id, leaves[0]!.revision, body, attachments)
  })
  signal.throwIfAborted()
  return read
}

/** A reading belongs to no single request, so that the end of one does not abort it. */
const neverAborted = new AbortController().signal

function existing(opened: OpenedDocument | null): OpenedDocument {
  if (opened === null) throw new ApiError('missing')
  if (opened.leaves[0]!.deleted) throw new ApiError('deleted')
  return opened
}
