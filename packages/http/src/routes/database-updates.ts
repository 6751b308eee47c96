/**
 * `_db_updates`: the changes of the database that records creations and deletions of databases
 * (docs/reference/changes.md#get-_db_updates).
 */
import { ApiError } from '@sectional/core'
import { parseEventId } from '@sectional/cluster'
import { rowFilter } from '../changes/changes-filter.ts'
import { databaseUpdatesParameters } from '../changes/changes-parameters.ts'
import { streamChanges } from '../changes/changes-stream.ts'
import type { FeedShape } from '../changes/changes-writer.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

/** Skips documents that clients have written into that database. */
const eventsOnly = rowFilter(({ id, leaves }) => parseEventId(id) !== null && !leaves[0]!.deleted, false)

const eventShape: FeedShape = {
  row: ({ sequence, id }) => {
    const { kind, name } = parseEventId(id)!
    return JSON.stringify({ db_name: name, type: kind, seq: sequence }).slice(0, -1)
  },
  pending: false,
}

export async function getDatabaseUpdates(request: RequestContext, services: Services): Promise<void> {
  const unavailable = services.control.unavailableReason()
  if (unavailable !== null) throw new ApiError('service_unavailable', unavailable, { headers: { 'Retry-After': '1' } })
  const parameters = databaseUpdatesParameters(request, services)
  request.database = await services.databaseEvents.open()
  await streamChanges(request, services, parameters, eventsOnly, eventShape)
}
