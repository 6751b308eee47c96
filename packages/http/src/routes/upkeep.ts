/** `_compact`, the clean-up of indexes, `_time_seq` and `_partition/{p}` (docs/reference/purge-and-upkeep.md). */
import { ApiError, checkPartition, formatIsoTime, formatRange } from '@sectional/core'
import { requireDatabaseAdmin } from '../authentication/authorization.ts'
import { readBody, requireJsonType } from '../messages/body.ts'
import { sendJson } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

export async function postCompact(request: RequestContext, services: Services): Promise<void> {
  requireJsonType(request)
  await readBody(request, services)
  await services.coordinator.compactDatabase(request.database, request)
  sendJson(request, services, 202, { ok: true })
}

/** Succeeds without doing anything: indexes are compacted by their store. */
export async function postCompactDesign(request: RequestContext, services: Services): Promise<void> {
  requireJsonType(request)
  await readBody(request, services)
  const opened = await services.coordinator.openDocument(
    request.database, `_design/${request.params[0]!}`, { body: false }, request,
  )
  if (opened === null) throw new ApiError('missing')
  if (opened.leaves[0]!.deleted) throw new ApiError('deleted')
  sendJson(request, services, 202, { ok: true })
}

/** Succeeds without doing anything: this version has no text search. */
export async function postCleanup(request: RequestContext, services: Services): Promise<void> {
  await readBody(request, services)
  sendJson(request, services, 202, { ok: true })
}

export async function getTimeSequence(request: RequestContext, services: Services): Promise<void> {
  const answer: Record<string, Record<string, [string, number][]>> = Object.fromEntries(
    request.database.shards.map(({ range }) => [formatRange(range), {}]),
  )
  for (const { range, node, spans } of await services.coordinator.timeSpans(request.database, false, request)) {
    answer[formatRange(range)]![node] = spans.map(({ begin, count }) => [formatIsoTime(begin), count])
  }
  sendJson(request, services, 200, { time_seq: answer })
}

export async function deleteTimeSequence(request: RequestContext, services: Services): Promise<void> {
  requireDatabaseAdmin(request.user, request.database)
  await services.coordinator.timeSpans(request.database, true, request)
  sendJson(request, services, 200, { ok: true })
}

export async function getPartition(request: RequestContext, services: Services): Promise<void> {
  const { database } = request
  const partition = request.params[0]!
  checkPartition(partition)
  if (!database.partitioned) throw new ApiError('bad_request', 'database is not partitioned')
  const { documentCount, deletedCount, sizes } = await services.coordinator.partitionInfo(database, partition, request)
  sendJson(request, services, 200, {
    db_name: database.name, sizes: { active: sizes.active, external: sizes.external }, partition,
    doc_count: documentCount, doc_del_count: deletedCount,
  })
}
