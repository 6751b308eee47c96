/** Sends the response of a changes feed. The caller defines the format of the rows. */
import { hash } from 'node:crypto'
import type { HttpHeaders } from '@sectional/runtime'
import { endHead, JsonWriter } from '../messages/json-writer.ts'
import { jsonHeaders, matchesTag, sendNotModified } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import type { ChangesFilter } from './changes-filter.ts'
import type { ChangesParameters, FeedKind } from './changes-parameters.ts'
import { ChangesRun } from './changes-run.ts'
import { ChangesWriter, type FeedShape } from './changes-writer.ts'

/**
 * Answers with the changes of the request's database. Resolves when the feed has ended.
 *
 * @param filter null selects every change
 * @param shape how a row is written
 */
export async function streamChanges(
  request: RequestContext, services: Services, parameters: ChangesParameters, filter: ChangesFilter | null,
  shape: FeedShape,
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
    since, descending, limit: filter === null ? limit : null, body: includeDocs || filter?.body === true,
    follow: kind !== 'normal',
  }, request)
  try {
    const writer = new ChangesWriter(
      new JsonWriter(request, services, 200, headers), kind, services.runtime.clock, shape,
    )
    await new ChangesRun(feed, parameters, filter, writer, request, services).run()
  } finally {
    await feed.close()
  }
}

function feedHeaders(kind: FeedKind, request: RequestContext, services: Services): HttpHeaders {
  const headers = jsonHeaders(request, services)
  return kind === 'eventsource'
    ? { ...headers, 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' }
    : headers
}
