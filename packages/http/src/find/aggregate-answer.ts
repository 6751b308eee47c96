/** Answers `_aggregate`. */
import { Aggregation } from '@sectional/core'
import type { AggregatedMatches } from '@sectional/cluster'
import { JsonWriter } from '../messages/json-writer.ts'
import { jsonHeaders } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { suggestionHeaders } from './advice.ts'
import type { AggregateRequest } from './aggregate-request.ts'
import { answerMembers } from './answer-members.ts'
import type { FindPlan } from './find-plan.ts'
import { isExact, scanTime, sourceOf } from './find-query.ts'

/** Aggregates the matches, and writes a row for each group. */
export async function answerAggregate(
  asked: AggregateRequest, plan: FindPlan, request: RequestContext, services: Services,
): Promise<void> {
  const { clock } = services.runtime
  const startedAt = clock.monotonic()
  const { rows, count, statistics } = await aggregateMatches(asked, plan, request, services)
  const outcome = { statistics, results: count, timeMs: clock.monotonic() - startedAt }
  const members = answerMembers(asked.find, plan, outcome, request, services)
  const headers = { ...jsonHeaders(request, services), ...suggestionHeaders(plan.suggestion) }
  const writer = new JsonWriter(request, services, 200, headers)
  writer.text('{"rows":[')
  for (const [index, row] of rows.entries()) {
    writer.text(index === 0 ? `\n${row}` : `,\n${row}`)
    const full = writer.flushFull()
    if (full !== undefined) await full
  }
  const tail = Object.entries(members).map(([name, value]) => `,\n${JSON.stringify(name)}:${JSON.stringify(value)}`)
  writer.text(`\n]${tail.join('')}}\n`)
  await writer.end()
}

async function aggregateMatches(
  { find, aggregate }: AggregateRequest, plan: FindPlan, request: RequestContext, services: Services,
): Promise<AggregatedMatches> {
  const source = sourceOf(find, plan)
  if (source === null) return { rows: new Aggregation(aggregate).rows(), count: 0, statistics: nothingRead }
  const { selector, partition } = find
  const query = {
    selector, source, aggregate, documents: plan.covering ? 'none' as const : 'winner' as const,
    isExact: isExact(find, plan),
    update: find.update && find.stale === false, timeoutMs: services.options.queryTimeoutMs,
    ...(partition !== undefined && { partition }),
  }
  const time = scanTime(query, request, services)
  try {
    return await services.coordinator.aggregateMatches(request.database, query, time.context)
  } catch (error) {
    throw time.errorOf(error)
  } finally {
    time.stop()
  }
}

const nothingRead = Object.freeze({
  keysExamined: 0, documentsExamined: 0, quorumDocumentsExamined: 0, matchesFound: 0,
})
