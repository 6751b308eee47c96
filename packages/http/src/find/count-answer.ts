/** Answers `_find` with `count: true`. */
import type { MatchCount } from '@sectional/cluster'
import { sendJson } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { suggestionHeaders } from './advice.ts'
import { answerMembers } from './answer-members.ts'
import type { FindPlan } from './find-plan.ts'
import { isExact, scanTime, sourceOf } from './find-query.ts'
import type { FindRequest } from './find-request.ts'

const nothing: MatchCount = {
  count: 0, statistics: { keysExamined: 0, documentsExamined: 0, quorumDocumentsExamined: 0, matchesFound: 0 },
}

/** Counts the matches and sends their number. */
export async function answerCount(
  find: FindRequest, plan: FindPlan, request: RequestContext, services: Services,
): Promise<void> {
  const { clock } = services.runtime
  const startedAt = clock.monotonic()
  const { count, statistics } = await countMatches(find, plan, request, services)
  const outcome = { statistics, results: count, timeMs: clock.monotonic() - startedAt }
  const members = answerMembers(find, plan, outcome, request, services)
  sendJson(request, services, 200, { count, ...members }, suggestionHeaders(plan.suggestion))
}

async function countMatches(
  find: FindRequest, plan: FindPlan, request: RequestContext, services: Services,
): Promise<MatchCount> {
  const source = sourceOf(find, plan)
  if (source === null) return nothing
  const { selector, partition } = find
  const query = {
    selector, source, documents: plan.covering ? 'none' as const : 'winner' as const, isExact: isExact(find, plan),
    update: find.update && find.stale === false, timeoutMs: services.options.queryTimeoutMs,
    ...(partition !== undefined && { partition }),
  }
  const time = scanTime(query, request, services)
  try {
    return await services.coordinator.countMatches(request.database, query, time.context)
  } catch (error) {
    throw time.errorOf(error)
  } finally {
    time.stop()
  }
}
