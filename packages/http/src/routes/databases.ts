/** `_all_dbs` and `_dbs_info`. */
import { hash } from 'node:crypto'
import { ApiError, mapBounded } from '@sectional/core'
import type { DatabaseRecord } from '@sectional/cluster'
import { readJsonObject, requireJsonType } from '../messages/body.ts'
import { databaseInformation } from '../databases/database-information.ts'
import { selectNames } from '../databases/database-names.ts'
import { matchesTag, sendJson, sendNotModified } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

const informationConcurrency = 8

export function getAllDatabases(request: RequestContext, services: Services): void {
  const names = databaseNames(services)
  const selected = selectNames(names, request.query)
  const etag = `"${hash('md5', names.join('/'), 'hex')}"`
  if (matchesTag(request, etag)) return sendNotModified(request, services, etag)
  sendJson(request, services, 200, selected, { ETag: etag })
}

export async function getDatabasesInformation(request: RequestContext, services: Services): Promise<void> {
  const names = selectNames(databaseNames(services), request.query)
  const rows = await mapBounded(names, informationConcurrency, name => informationRow(name, request, services))
  const known = rows.filter(row => 'info' in row)
  const etag = `"${hash('md5', JSON.stringify(known), 'hex')}"`
  if (matchesTag(request, etag)) return sendNotModified(request, services, etag)
  sendJson(request, services, 200, known, { ETag: etag })
}

export async function postDatabasesInformation(request: RequestContext, services: Services): Promise<void> {
  requireJsonType(request)
  const { keys } = await readJsonObject(request, services)
  if (keys === undefined) throw new ApiError('bad_request', '`keys` member must exist.')
  if (!Array.isArray(keys)) throw new ApiError('bad_request', '`keys` member must be an array.')
  if (keys.length > services.options.databasesInfoMax) throw new ApiError('bad_request', 'too_many_keys')
  sendJson(
    request, services, 200,
    await mapBounded(keys, informationConcurrency, key => informationRow(key, request, services)),
  )
}

async function informationRow(key: unknown, request: RequestContext, services: Services): Promise<object> {
  const record: DatabaseRecord | undefined = typeof key === 'string'
    ? services.control.state()?.databases.get(key)
    : undefined
  if (record === undefined) return { key, error: 'not_found' }
  return { key, info: await databaseInformation(record, request, services) }
}

function databaseNames(services: Services): readonly string[] {
  return [...services.control.state()?.databases.keys() ?? []]
}
