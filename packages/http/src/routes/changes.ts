/** `_changes`. */
import { ApiError } from '@sectional/core'
import { changesParameters } from '../changes/changes-parameters.ts'
import { streamChanges } from '../changes/changes-stream.ts'
import { changesShape } from '../changes/changes-writer.ts'
import { chooseFilter, type ChangesBody } from '../changes/filter-choice.ts'
import { parseBodyObject, readJsonBytes, requireJsonType } from '../messages/body.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

export async function getChanges(request: RequestContext, services: Services): Promise<void> {
  const body = await changesBody(request, services)
  const parameters = changesParameters(request, services)
  const filter = await chooseFilter(request, body, parameters, services)
  await streamChanges(request, services, parameters, filter, changesShape)
}

async function changesBody(request: RequestContext, services: Services): Promise<ChangesBody | null> {
  if (request.method !== 'POST') return null
  requireJsonType(request)
  const bytes = await readJsonBytes(request, services)
  return { bytes, members: bytes.length === 0 ? {} : await parseBodyObject(bytes, request, services) }
}

export function refuseChangesMethod(): void {
  throw new ApiError('method_not_allowed', 'Only GET,POST,HEAD allowed', { headers: { Allow: 'GET,HEAD,POST' } })
}
