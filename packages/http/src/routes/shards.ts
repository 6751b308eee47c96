/** `_shards`, `_shards/{id}`, `_sync_shards`, `_ensure_full_commit`. */
import { ApiError, documentHash, formatRange, rangeContains } from '@sectional/core'
import type { ShardRecord } from '@sectional/cluster'
import { instanceStartTime } from '../databases/database-information.ts'
import { readBody, requireJsonType } from '../messages/body.ts'
import { sendJson } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

export function getShards(request: RequestContext, services: Services): void {
  const shards = request.database.shards.map(shard => [formatRange(shard.range), nodesOf(shard)])
  sendJson(request, services, 200, { shards: Object.fromEntries(shards) })
}

export function getShardOfDocument(request: RequestContext, services: Services): void {
  const { database } = request
  const hash = documentHash(request.params[0]!, database.partitioned)
  const shard = database.shards.find(({ range }) => rangeContains(range, hash))
  if (shard === undefined) throw new ApiError('internal_server_error', 'No DB shards could be opened.')
  sendJson(request, services, 200, { range: formatRange(shard.range), nodes: nodesOf(shard) })
}

function nodesOf(shard: ShardRecord): string[] {
  return shard.replicas.map(replica => replica.node)
}

export async function postSynchronizeShards(request: RequestContext, services: Services): Promise<void> {
  await readBody(request, services)
  services.coordinator.synchronize(request.database)
  sendJson(request, services, 202, { ok: true })
}

/** Answers at once, because every acknowledged write is already on disk. Replicators compare the start time. */
export async function postEnsureFullCommit(request: RequestContext, services: Services): Promise<void> {
  requireJsonType(request)
  await readBody(request, services)
  sendJson(request, services, 201, { ok: true, instance_start_time: instanceStartTime })
}
