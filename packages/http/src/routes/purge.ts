/** `_purge` and `_purged_infos` (docs/reference/purge-and-upkeep.md#post-db_purge). */
import { usersDatabase } from '@sectional/cluster'
import { ApiError, formatRevision, parseRevision } from '@sectional/core'
import { originOf } from '../audit/audit.ts'
import { checkPlacedId } from '../documents/document-reading.ts'
import { readJsonObject, requireJsonType } from '../messages/body.ts'
import { sendJson } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { checkRevisionCount } from '../settings/size-limits.ts'

export async function postPurge(request: RequestContext, services: Services): Promise<void> {
  requireJsonType(request)
  const asked = await readJsonObject(request, services)
  const entries = Object.entries(asked)
  checkRevisionCount(entries, services.options)
  const requests = await services.runtime.turns.map(
    entries, ([id, revisions]) => {
      checkPlacedId(id, request)
      return { id, revisions: checkRevisions(revisions) }
    },
  )
  const total = requests.reduce((sum, { revisions }) => sum + revisions.length, 0)
  if (total > services.options.purgedRevisionsMax) {
    throw new ApiError('bad_request', 'Exceeded maximum number of revisions.')
  }
  const outcomes = await services.coordinator.purgeDocuments(
    request.database, requests, { w: request.query.quorum('w') }, request,
  )
  recordPurge(requests.map(({ id }, index) => ({ id, count: outcomes[index]!.revisions.length })), request, services)
  const purged = Object.create(null) as Record<string, readonly string[]>
  for (const [index, { id }] of requests.entries()) purged[id] = outcomes[index]!.revisions
  sendJson(request, services, outcomes.some(outcome => outcome.accepted) ? 202 : 201, { purge_seq: null, purged })
}

/** @param purged the documents that were named, with the number of their revisions that were purged */
function recordPurge(
  purged: readonly { readonly id: string; readonly count: number }[], request: RequestContext, { audit }: Services,
): void {
  const { name: database } = request.database
  const origin = originOf(request)
  const revisions = purged.reduce((sum, { count }) => sum + count, 0)
  audit.record({ ...origin, event: 'documents_purged', details: { database, documents: purged.length, revisions } })
  if (database !== usersDatabase) return
  for (const { id, count } of purged) {
    if (count > 0) audit.record({ ...origin, event: 'user_changed', details: { document: id } })
  }
}

function checkRevisions(value: unknown): string[] {
  if (!Array.isArray(value)) throw new ApiError('bad_request', 'Invalid list of revisions')
  return value.map(revision => formatRevision(parseRevision(revision)))
}

export async function getPurgedInfos(request: RequestContext, services: Services): Promise<void> {
  const infos = await services.coordinator.purgedInfos(request.database, request)
  sendJson(request, services, 200, { purged_infos: infos.map(({ id, revisions }) => ({ id, revs: revisions })) })
}
