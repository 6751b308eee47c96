/** `_purge` and `_purged_infos` (docs/reference/purge-and-upkeep.md#post-db_purge). */
import { ApiError, formatRevision, parseRevision } from '@sectional/core'
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
    entries, ([id, revisions]) => ({ id, revisions: checkRevisions(revisions) }),
  )
  const total = requests.reduce((sum, { revisions }) => sum + revisions.length, 0)
  if (total > services.options.purgedRevisionsMax) {
    throw new ApiError('bad_request', 'Exceeded maximum number of revisions.')
  }
  const outcomes = await services.coordinator.purgeDocuments(
    request.database, requests, { w: request.query.quorum('w') }, request,
  )
  const purged = Object.create(null) as Record<string, readonly string[]>
  for (const [index, { id }] of requests.entries()) purged[id] = outcomes[index]!.revisions
  sendJson(request, services, outcomes.some(outcome => outcome.accepted) ? 202 : 201, { purge_seq: null, purged })
}

function checkRevisions(value: unknown): string[] {
  if (!Array.isArray(value)) throw new ApiError('bad_request', 'Invalid list of revisions')
  return value.map(revision => formatRevision(parseRevision(revision)))
}

export async function getPurgedInfos(request: RequestContext, services: Services): Promise<void> {
  const infos = await services.coordinator.purgedInfos(request.database, request)
  sendJson(request, services, 200, { purged_infos: infos.map(({ id, revisions }) => ({ id, revs: revisions })) })
}
