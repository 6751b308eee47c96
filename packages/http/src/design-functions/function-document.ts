/** Documents as functions of design documents see them. */
import { localPrefix, spliceDocument } from '@sectional/core'
import { noFlags, pathOf, showRevision } from '../documents/document-reading.ts'
import { localRevision } from '../documents/local-writing.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

/** Number of ids in `_revisions` of a document that a function gets. */
export const functionRevisionsMax = 20
const functionFlags = Object.freeze({ ...noFlags, revs: true, conflicts: true })

/**
 * Returns the winner of a document as JSON text, with `_revisions`, `_conflicts` and stubs of its attachments; a local
 * document has none of these. Returns null when the document does not exist or is deleted.
 */
export async function functionDocument(
  id: string, request: RequestContext, { coordinator }: Services,
): Promise<string | null> {
  if (id.startsWith(localPrefix)) {
    const local = await coordinator.openLocalDocument(request.database, id.slice(localPrefix.length), {}, request)
    if (local === null || local.body === null) return null
    return spliceDocument({ id, revision: localRevision(local.revision), body: local.body }).toString()
  }
  const opened = await coordinator.openDocument(request.database, id, { tree: true }, request)
  const winner = opened?.leaves[0]
  if (opened?.body === undefined || winner === undefined || winner.deleted) return null
  const { body, attachments, leaves, tree } = opened
  const path = pathOf(tree, winner.revision)
  const shown = {
    id, revision: winner.revision, deleted: false, body, leaves, ...(attachments && { attachments }),
    ...(path && { path: { start: path.start, ids: path.ids.slice(0, functionRevisionsMax) } }),
  }
  return showRevision(shown, functionFlags).json.toString()
}
