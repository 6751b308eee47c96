/** `/_node/{name}/_config`: docs/reference/cluster-and-nodes.md#get-_nodenode_config. */
import { ApiError, parseExactly, parseJson } from '@sectional/core'
import { hashChangedPassword, parseAdminHash } from '../authentication/admin-password.ts'
import { readJsonBytes } from '../messages/body.ts'
import type { ChangeAuthor, ConfigurationQuestion } from '../configuration/configuration-question.ts'
import { askNode } from '../configuration/node-questions.ts'
import { checkSettingLength } from '../configuration/setting-limits.ts'
import { sendJson } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

export async function getConfiguration(request: RequestContext, services: Services): Promise<void> {
  sendJson(request, services, 200, await ask(request, services, { action: 'sections' }))
}

export async function getConfigurationSection(request: RequestContext, services: Services): Promise<void> {
  sendJson(request, services, 200, await ask(request, services, { action: 'section', section: request.params[1]! }))
}

export async function getConfigurationValue(request: RequestContext, services: Services): Promise<void> {
  const [, section, key] = request.params as [string, string, string]
  sendJson(request, services, 200, known(await ask(request, services, { action: 'get', section, key })))
}

/** Sets a value and answers with the previous one. For an administrator that is the stored hash. */
export async function putConfigurationValue(request: RequestContext, services: Services): Promise<void> {
  const [, section, key] = request.params as [string, string, string]
  const body = await readJsonBytes(request, services)
  if (body.length === 0 && request.header('content-type') === undefined) throw new ApiError('missing_body')
  const given = parseJson(body)
  let value = (typeof given === 'string' ? given : JSON.stringify(parseExactly(Buffer.from(body)
    .toString('utf8')))).trim()
  checkSettingLength(section, key, value)
  if (section === 'admins' && !request.query.flag('raw') && parseAdminHash(value) === null) {
    if (typeof given !== 'string') throw new ApiError('bad_request', `The password of ${key} must be a text.`)
    value = await hashPassword(request, services, key, value)
  }
  const previous = await ask(request, services, {
    action: 'set', section, key, value, persist: persist(request), by: author(request),
  })
  sendJson(request, services, 200, section === 'admins' ? value : previous ?? '')
}

export async function deleteConfigurationValue(request: RequestContext, services: Services): Promise<void> {
  const [, section, key] = request.params as [string, string, string]
  const previous = await ask(request, services, {
    action: 'delete', section, key, persist: persist(request), by: author(request),
  })
  sendJson(request, services, 200, known(previous))
}

export async function reloadConfiguration(request: RequestContext, services: Services): Promise<void> {
  await ask(request, services, { action: 'reload', by: author(request) })
  sendJson(request, services, 200, { ok: true })
}

/** @throws ApiError `bad_request` for an empty password, which would let everybody in */
async function hashPassword(
  request: RequestContext, services: Services, name: string, password: string,
): Promise<string> {
  if (password === '') {
    throw new ApiError('bad_request', `The password of ${name} is empty. Set one, or remove the administrator with `
      + 'DELETE.')
  }
  const previous = await ask(request, services, { action: 'get', section: 'admins', key: name }) as string | null
  return hashChangedPassword(name, password, previous, {
    iterations: services.options.passwordIterations, machine: services.runtime.machine, random: services.runtime.random,
    clusterSecret: services.clusterSecret,
  })
}

function ask(request: RequestContext, services: Services, question: ConfigurationQuestion): Promise<unknown> {
  return askNode(services, request.params[0]!, 'config', question)
}

function known(value: unknown): unknown {
  if (value === null) throw new ApiError('not_found', 'unknown_config_value')
  return value
}

/** Returns who makes a change, for the log of the node that makes it. */
function author({ user, clientAddress, requestId }: RequestContext): ChangeAuthor {
  return { user: user.name ?? '', address: clientAddress, requestId }
}

function persist(request: RequestContext): boolean {
  return request.header('x-couch-persist') !== 'false'
}
