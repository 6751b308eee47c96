/** `/_node/{name}` and the information that a node gives about itself. */
import { ApiError, isJsonObject } from '@sectional/core'
import { askNode } from '../configuration/node-questions.ts'
import { plainHeaders, send, sendJson } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

export function refuseIncompletePath(): void {
  throw new ApiError('bad_request', 'Incomplete path to _node request')
}

export function getNode(request: RequestContext, services: Services): void {
  const name = request.params[0]!
  const { control } = services
  const node = name === '_local' ? control.node : name
  if (node !== control.node && !Object.hasOwn(control.state()?.nodes ?? {}, node)) {
    throw new ApiError('not_found', `no such node: ${node}`)
  }
  sendJson(request, services, 200, { name: node })
}

/** Answers with the statistics tree or a part of it; the answer is null when the path does not exist. */
export async function getStatistics(request: RequestContext, services: Services): Promise<void> {
  const [node, path] = request.params
  let at: unknown = await askNode(services, node!, 'stats', null)
  for (const step of path === undefined ? [] : path.split('/')) {
    at = isJsonObject(at) && Object.hasOwn(at, step) ? at[step] : null
  }
  sendJson(request, services, 200, at)
}

export async function getSystem(request: RequestContext, services: Services): Promise<void> {
  sendJson(request, services, 200, await askNode(services, request.params[0]!, 'system', null))
}

/**
 * Answers with the node's replicas. This endpoint is Sectional's own: equal digests on all nodes mean equal revision
 * trees.
 */
export async function getReplicas(request: RequestContext, services: Services): Promise<void> {
  const [node, database] = request.params
  if (services.control.state()?.databases.has(database!) !== true) throw new ApiError('database_missing')
  sendJson(request, services, 200, { replicas: await askNode(services, node!, 'replicas', database) })
}

export async function getVersions(request: RequestContext, services: Services): Promise<void> {
  sendJson(request, services, 200, await askNode(services, request.params[0]!, 'versions', null))
}

export async function getPrometheus(request: RequestContext, services: Services): Promise<void> {
  const text = await askNode(services, request.params[0]!, 'prometheus', null)
  send(
    request, services, 200, { ...plainHeaders(request, services), 'Content-Type': 'text/plain; version=2.0' },
    String(text),
  )
}
