/** `/_node/{name}/_config`: docs/reference/cluster-and-nodes.md#get-_nodenode_config. */
import { ApiError, parseExactly, parseJson } from '@sectional/core'
import { hashAdminPassword, parseAdminHash } from '../authentication/admin-password.ts'
import { readJsonBytes } from '../messages/body.ts'
import { httpDeclarations } from '../settings/http-options.ts'
import { askNode, type ConfigurationQuestion } from '../settings/node-questions.ts'
import { sendJson } from '../messages/response.ts'
import type { RequestContext } from '../request/request-context.ts'
import type { Services } from '../services/services.ts'

/** Sections that name programs and handlers. They can be read but not changed over HTTP. */
const blockedSections = new Set([
  'daemons', 'external', 'httpd_design_handlers', 'httpd_db_handlers', 'httpd_global_handlers',
  'native_query_servers', 'os_daemons', 'query_servers', 'feature_flags',
])

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
  checkEditable(services, section, key)
  const body = await readJsonBytes(request, services)
  if (body.length === 0 && request.header('content-type') === undefined) throw new ApiError('missing_body')
  const given = parseJson(body)
  let value = (typeof given === 'string' ? given : JSON.stringify(parseExactly(Buffer.from(body)
    .toString('utf8')))).trim()
  const plainPassword = section === 'admins' && !request.query.flag('raw') && parseAdminHash(value) === null
  if (plainPassword) value = await hashAdminPassword(key, value, {
    iterations: services.options.passwordIterations, machine: services.runtime.machine, random: services.runtime.random,
    clusterSecret: services.clusterSecret,
  })
  if (section === 'admins' && parseAdminHash(value) === null) {
    throw new ApiError(
      'bad_request',
      'With raw=true the value must be a password hash, such as -pbkdf2:sha256-{key},{salt},{iterations}.',
    )
  }
  const previous = await ask(request, services, { action: 'set', section, key, value, persist: persist(request) })
  sendJson(request, services, 200, section === 'admins' ? value : previous ?? '')
}

export async function deleteConfigurationValue(request: RequestContext, services: Services): Promise<void> {
  const [, section, key] = request.params as [string, string, string]
  checkEditable(services, section, key)
  sendJson(
    request, services, 200,
    known(await ask(request, services, { action: 'delete', section, key, persist: persist(request) })),
  )
}

export async function reloadConfiguration(request: RequestContext, services: Services): Promise<void> {
  await ask(request, services, { action: 'reload' })
  sendJson(request, services, 200, { ok: true })
}

function ask(request: RequestContext, services: Services, question: ConfigurationQuestion): Promise<unknown> {
  return askNode(services, request.params[0]!, 'config', question)
}

function known(value: unknown): unknown {
  if (value === null) throw new ApiError('not_found', 'unknown_config_value')
  return value
}

function persist(request: RequestContext): boolean {
  return request.header('x-couch-persist') !== 'false'
}

function checkEditable(services: Services, section: string, key: string): void {
  if (blockedSections.has(section)) {
    throw new ApiError('forbidden', 'Config section blacklisted for modification over HTTP API.')
  }
  const whitelist = services.options.configWhitelist
  if (whitelist === undefined || whitelist.trim() === '') return
  const allowed = parseWhitelist(whitelist) ?? [httpDeclarations.configWhitelist]
  if (!allowed.some(entry => entry.section === section && (entry.key === '*' || entry.key === key))) {
    throw new ApiError('modification_not_allowed')
  }
}

const whitelistForm = /^\[\s*(?:\{[^{}]*\}\s*,?\s*)*\]$/
const whitelistEntry = /\{\s*(?:"([^"]*)"|([\w-]+))\s*,\s*(?:"([^"]*)"|([\w-]+))\s*\}/g

/** Parses text of the form `[{section, key}, {"section", "*"}]`. Returns null when it has another form. */
function parseWhitelist(text: string): { section: string; key: string }[] | null {
  if (!whitelistForm.test(text.trim())) return null
  return [...text.matchAll(whitelistEntry)].map(([, quotedSection, section, quotedKey, key]) => (
    { section: quotedSection ?? section ?? '', key: quotedKey ?? key ?? '' }
  ))
}
