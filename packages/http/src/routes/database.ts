/** `/{db}`: creates, describes and deletes a database. POST of documents to it is in `document-update`. */
import { ApiError, checkDatabaseName } from '@sectional/core'
import { replicasPerShardMax, shardsPerDatabaseMax, usersDatabase } from '@sectional/cluster'
import { originOf } from '../audit/audit.ts'
import { databaseInformation } from '../databases/database-information.ts'
import { location, sendJson } from '../messages/response.ts'
import { readPartitioned } from '../request/partitioned-parameter.ts'
import type { RequestContext } from '../request/request-context.ts'
import { isSystemName } from '../request/system-names.ts'
import type { Services } from '../services/services.ts'
import { keepUsersDatabaseAbsent } from '../users/users-database.ts'

export async function getDatabase(request: RequestContext, services: Services): Promise<void> {
  sendJson(request, services, 200, await databaseInformation(request.database, request, services))
}

export async function putDatabase(request: RequestContext, services: Services): Promise<void> {
  const name = request.params[0]!
  const { control, options } = services
  const q = positive(request, 'q', options.shardsPerDatabase, shardsPerDatabaseMax)
  const n = Math.min(positive(request, 'n', options.replicasPerShard), replicasPerShardMax)
  checkEngine(request)
  const partitioned = readPartitioned(name, request.query)
  checkPlacement(request)
  checkDatabaseName(name)
  if (control.state()?.databases.has(name)) throw new ApiError('file_exists')
  await control.createDatabase(name, { q, n, partitioned })
  services.audit.record({
    ...originOf(request), event: 'database_created', details: { database: name, q, n, partitioned },
  })
  if (options.defaultSecurity !== 'admin_only' && !isSystemName(name)) await control.setSecurity(name, {})
  sendJson(request, services, 201, { ok: true }, { Location: location(request, services, name) })
}

function positive(request: RequestContext, parameter: 'q' | 'n', fallback: number, max = Infinity): number {
  const text = request.query.get(parameter)
  if (text === undefined) return fallback
  const value = /^\d+$/.test(text) ? Number(text) : 0
  if (value < 1) throw new ApiError('bad_request', `The \`${parameter}\` value should be a positive integer.`)
  if (value > max) throw new ApiError('bad_request', `The \`${parameter}\` value should be at most ${max}.`)
  return value
}

/** Accepts only the name of CouchDB's storage engine, which names the only engine of Sectional too. */
function checkEngine(request: RequestContext): void {
  const engine = request.query.get('engine')
  if (engine !== undefined && engine !== 'couch') throw new ApiError('bad_request', 'invalid_engine_extension')
}

const placementForm = /^[^:,]+:\d+(?:,[^:,]+:\d+)*$/

function checkPlacement(request: RequestContext): void {
  const placement = request.query.get('placement')
  if (placement === undefined) return
  if (!placementForm.test(placement)) {
    throw new ApiError('bad_request', 'The `placement` value should be in a format `zone:n`.')
  }
  throw new ApiError('not_implemented', 'Placement by zone is not available in this version.')
}

export async function deleteDatabase(request: RequestContext, services: Services): Promise<void> {
  const name = request.params[0]!
  checkDatabaseName(name)
  const known = services.control.state()?.databases.has(name)
    || await services.control.confirmAbsent(name) !== undefined
  if (!known) throw new ApiError('database_missing')
  if (request.query.has('rev')) {
    throw new ApiError(
      'bad_request',
      'You tried to DELETE a database with a ?=rev parameter. Did you mean to DELETE a document instead?',
    )
  }
  if (name === usersDatabase) await keepUsersDatabaseAbsent(services)
  const outcome = await services.control.deleteDatabase(name)
  services.audit.record({ ...originOf(request), event: 'database_deleted', details: { database: name, outcome } })
  sendJson(request, services, outcome === 'deleted' ? 200 : 202, { ok: true })
}
