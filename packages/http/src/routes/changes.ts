/** `_changes`. */
import { hash } from 'node:crypto'
import { ApiError, type JsonObject } from '@sectional/core'
import type { HttpHeaders } from '@sectional/runtime'
import { parseBodyObject, readJsonBytes, requireJsonType } from '../messages/body.ts'
import { changesFilter, type ChangesFilter } from '../changes/changes-filter.ts'
import { changesParameters, type ChangesParameters, type FeedKind } from '../changes/changes-parameters.ts'
import { ChangesRun } from '../changes/changes-run.ts'
import { changesShape, ChangesWriter, type FeedShape } from '../changes/changes-writer.ts'
import { endHead, JsonWriter } from '../messages/json-writer.ts'
import { jsonHeaders, matchesTag, sendNotModified } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

export async function getChanges(request: RequestContext, services: Services): Promise<void> {
  const body = await changesBody(request, services)
  const parameters = changesParameters(request, services)
  const filter = await changesFilter(request, body, services)
  await streamChanges(request, services, parameters, filter, changesShape)
}

/** The changes of the request's database as its client wants them. */
export async function streamChanges(
  request: RequestContext, services: Services, parameters: ChangesParameters, filter: ChangesFilter | null, shape: FeedShape,
): Promise<void> {
  const { feed: kind, since, descending, limit, includeDocs } = parameters
  const headers = feedHeaders(kind, request, services)
  if (kind === 'normal') {
    const { fingerprint } = await services.coordinator.databaseState(request.database, request)
    const etag = `"${hash('md5', `${request.database.incarnation}\n${fingerprint}`, 'hex')}"`
    if (matchesTag(request, etag)) return sendNotModified(request, services, etag)
    headers['ETag'] = etag
  } else {
    services.admission.becomeFeed(request)
  }
  if (request.head) return endHead(request, services, headers)
  const feed = await services.coordinator.openChanges(request.database, {
    since, descending, limit: filter === null ? limit : null, body: includeDocs || filter?.body === true, follow: kind !== 'normal',
  }, request)
  try {
    const writer = new ChangesWriter(new JsonWriter(request, services, 200, headers), kind, services.runtime.clock, shape)
    await new ChangesRun(feed, parameters, filter, writer, request, services).run()
  } finally {
    await feed.close()
  }
}

async function changesBody(request: RequestContext, services: Services): Promise<JsonObject | null> {
  if (request.method !== 'POST') return null
  requireJsonType(request)
  const bytes = await readJsonBytes(request, services)
  return bytes.length === 0 ? {} : parseBodyObject(bytes, request, services)
}

function feedHeaders(kind: FeedKind, request: RequestContext, services: Services): HttpHeaders {
  const headers = jsonHeaders(request, services)
  return kind === 'eventsource' ? { ...headers, 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' } : headers
}

export function refuseChangesMethod(): void {
  throw new ApiError('method_not_allowed', 'Only GET,POST,HEAD allowed', { headers: { Allow: 'GET,HEAD,POST' } })
}
