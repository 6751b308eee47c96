/** `_revs_diff` and `_missing_revs`, which a replicator requests before it sends documents. */
import { ApiError, formatRevision, parseRevision, type RevisionsDiff } from '@sectional/core'
import { readJsonObject, requireJsonType } from '../messages/body.ts'
import { sendJson } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { checkRevisionCount } from '../settings/size-limits.ts'

export async function postRevisionsDiff(request: RequestContext, services: Services): Promise<void> {
  const answer = Object.create(null) as Record<string, object>
  for (const { id, missing, possibleAncestors } of await diff(request, services)) {
    if (missing.length > 0) {
      answer[id] = possibleAncestors.length > 0 ? { missing, possible_ancestors: possibleAncestors } : { missing }
    }
  }
  sendJson(request, services, 200, answer)
}

export async function postMissingRevisions(request: RequestContext, services: Services): Promise<void> {
  const answer = Object.create(null) as Record<string, readonly string[]>
  for (const { id, missing } of await diff(request, services)) {
    if (missing.length > 0) answer[id] = missing
  }
  sendJson(request, services, 200, { missing_revs: answer })
}

async function diff(request: RequestContext, services: Services): Promise<readonly RevisionsDiff[]> {
  requireJsonType(request)
  const asked = await readJsonObject(request, services)
  const entries = Object.entries(asked)
  checkRevisionCount(entries, services.options)
  const requests = await services.runtime.turns.map(
    entries, ([id, revisions]) => ({ id, revisions: checkRevisions(revisions) }),
  )
  return requests.length === 0 ? [] : services.coordinator.diffRevisions(request.database, requests, request)
}

function checkRevisions(value: unknown): readonly string[] {
  if (!Array.isArray(value)) throw new ApiError('bad_request', 'Revisions must be a JSON array of strings.')
  return value.map(revision => formatRevision(parseRevision(revision)))
}
