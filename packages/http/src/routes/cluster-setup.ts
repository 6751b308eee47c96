/**
 * `/_cluster_setup`. A Sectional cluster forms by itself from the seed list and the cluster secret. This endpoint only
 * reports the state and creates the system databases that setup scripts wait for; it never adds or removes nodes.
 */
import { ApiError, parseJson } from '@sectional/core'
import { originOf } from '../audit/audit.ts'
import { parseBodyObject, readBody } from '../messages/body.ts'
import { sendJson } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'
import { createDatabases, isCluster, systemDatabases } from '../services/system-databases.ts'

export function getClusterSetup(request: RequestContext, services: Services): void {
  const wanted = request.query.get('ensure_dbs_exist')
  const databases = wanted === undefined ? systemDatabases : databaseNames(parseJson(wanted))
  sendJson(request, services, 200, { state: setupState(services, databases) })
}

export async function postClusterSetup(request: RequestContext, services: Services): Promise<void> {
  const bytes = await readBody(request, services)
  if (bytes.length === 0) throw new ApiError('bad_request', "Missing JSON body'")
  const body = await parseBodyObject(bytes, request, services)
  const databases = body['ensure_dbs_exist'] === undefined ? systemDatabases : databaseNames(body['ensure_dbs_exist'])
  await perform(request, services, body, databases)
  sendJson(request, services, 201, { ok: true })
}

async function perform(
  request: RequestContext, services: Services, body: Record<string, unknown>, databases: readonly string[],
): Promise<void> {
  const state = setupState(services, databases)
  switch (body['action']) {
    case 'enable_single_node':
      if (isCluster(services)) throw new ApiError('bad_request', 'Cluster is already enabled')
      return createDatabases(databases, originOf(request), services)
    case 'enable_cluster':
      throw new ApiError('bad_request', 'Cluster is already enabled')
    case 'add_node':
      return checkMember(services, body)
    case 'finish_cluster':
      if (state === 'cluster_finished') throw new ApiError('bad_request', 'Cluster is already finished')
      return createDatabases(databases, originOf(request), services)
    default:
      throw new ApiError('bad_request', "Invalid Action'")
  }
}

function setupState(services: Services, databases: readonly string[]): string {
  const state = services.control.state()
  const complete = state !== null && databases.every(name => state.databases.has(name))
  if (state === null || isCluster(services)) return complete ? 'cluster_finished' : 'cluster_enabled'
  return complete ? 'single_node_enabled' : 'single_node_disabled'
}

/**
 * Succeeds for a node that is already a member, so that scripts can be repeated. Nodes join through their own seed list
 * only.
 */
function checkMember(services: Services, body: Record<string, unknown>): void {
  const host = body['host']
  const members = Object.values(services.control.state()?.nodes ?? {})
  const joined = typeof host === 'string' && members.some(member => (
    member.name === host || member.name.split('@')[1] === host || member.address.split(':')[0] === host
  ))
  if (!joined) throw new ApiError('bad_request', 'Add node failed. Invalid Host and/or Port.')
}

function databaseNames(value: unknown): readonly string[] {
  if (!Array.isArray(value) || !value.every(name => typeof name === 'string' && systemNames.has(name))) {
    throw new ApiError('bad_request', '`ensure_dbs_exist` must be an array of system database names.')
  }
  return value as string[]
}

const systemNames = new Set(['_users', '_replicator', '_global_changes'])
