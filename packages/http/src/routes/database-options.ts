/**
 * `_security`, `_revs_limit`, `_purged_infos_limit`, `_auto_purge`: properties of a database that the control plane
 * stores.
 */
import { ApiError, isJsonObject } from '@sectional/core'
import { parseTimeToLive, type DatabaseOption } from '@sectional/cluster'
import { originOf } from '../audit/audit.ts'
import { securityDetails } from '../audit/security-details.ts'
import { checkSecurityShape, requireDatabaseAdmin } from '../authentication/authorization.ts'
import { parseBodyObject, readJson, readJsonBytes } from '../messages/body.ts'
import { sendJson } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import type { RequestLimit } from '../settings/size-limits.ts'
import { createDatabaseOf } from '../users/future-users.ts'

const limitMax = 2 ** 31 - 1
/** Every node holds all metadata in memory, and one change of the metadata may have at most 1 MiB. */
const securityLimit: RequestLimit = { bytes: 900 * 1024, setting: 'the limit of this endpoint' }

export function getSecurity(request: RequestContext, services: Services): void {
  sendJson(request, services, 200, request.database.security)
}

export async function putSecurity(request: RequestContext, services: Services): Promise<void> {
  requireDatabaseAdmin(request.user, request.database)
  const security = await parseBodyObject(await readJsonBytes(request, services, securityLimit), request, services)
  checkSecurityShape(security)
  if (request.database.name === '_users' && !services.options.usersSecurityEditable) {
    throw new ApiError('forbidden', "You can't edit the security object of the user database.")
  }
  await createDatabaseOf(request.database)
  await services.control.setSecurity(request.database.name, security)
  services.audit.record({
    ...originOf(request), event: 'security_changed', details: securityDetails(request.database.name, security),
  })
  sendJson(request, services, 200, { ok: true })
}

export function getRevisionsLimit(request: RequestContext, services: Services): void {
  sendJson(request, services, 200, request.database.revsLimit)
}

export async function putRevisionsLimit(request: RequestContext, services: Services): Promise<void> {
  requireDatabaseAdmin(request.user, request.database)
  const revsLimit = await readJson(request, services)
  if (!isLimit(revsLimit)) throw new ApiError('bad_request', '`revs_limit` must be positive integer')
  await setOption({ revsLimit }, ['revs_limit', revsLimit], request, services)
  sendJson(request, services, 200, { ok: true })
}

export function getPurgedInfosLimit(request: RequestContext, services: Services): void {
  sendJson(request, services, 200, request.database.purgedInfosLimit)
}

export async function putPurgedInfosLimit(request: RequestContext, services: Services): Promise<void> {
  const purgedInfosLimit = await readJson(request, services)
  if (!isLimit(purgedInfosLimit)) throw new ApiError('bad_request', '`purged_infos_limit` must be positive integer')
  await setOption({ purgedInfosLimit }, ['purged_infos_limit', purgedInfosLimit], request, services)
  sendJson(request, services, 200, { ok: true })
}

/** @param shown name and value in the audit stream */
async function setOption(
  option: DatabaseOption, [name, value]: readonly [string, string | number | null], request: RequestContext,
  { audit, control }: Services,
): Promise<void> {
  const { database } = request
  await createDatabaseOf(database)
  await control.setDatabaseOption(database.name, option)
  audit.record({
    ...originOf(request), event: 'database_changed', details: { database: database.name, option: name, value },
  })
}

function isLimit(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= limitMax
}

export function getAutoPurge(request: RequestContext, services: Services): void {
  sendJson(request, services, 200, request.database.autoPurge)
}

export async function putAutoPurge(request: RequestContext, services: Services): Promise<void> {
  requireDatabaseAdmin(request.user, request.database)
  const autoPurge = await readJson(request, services)
  if (!isJsonObject(autoPurge)) throw new ApiError('bad_request', 'malformed auto purge body')
  for (const [name, value] of Object.entries(autoPurge)) {
    if (name !== 'deleted_document_ttl') throw new ApiError('bad_request', 'invalid auto purge property')
    if (parseTimeToLive(value) === null) {
      throw new ApiError('bad_request', 'deleted_document_ttl must be a valid string')
    }
  }
  const ttl = autoPurge['deleted_document_ttl'] as string | undefined
  await setOption({ autoPurge }, ['deleted_document_ttl', ttl ?? null], request, services)
  sendJson(request, services, 202, { ok: true })
}
