/** Answers questions about the configuration on the node that they are about. Answers and logs contain no secrets. */
import { ApiError } from '@sectional/core'
import type { ControlPlane } from '@sectional/cluster'
import { hiddenValue, hideCredentials } from '@sectional/core/options'
import type { Clock, Log, Random } from '@sectional/runtime'
import type { Audit, AuditDetails } from '../audit/audit.ts'
import { parseAdminHash } from '../authentication/admin-password.ts'
import { administratorBounds } from '../authentication/password-hash.ts'
import { recordPreviousSecrets, replaceGeneratedSecret } from '../authentication/session-secrets.ts'
import { presentName } from '../settings/former-names.ts'
import { httpDeclarations, type HttpOptions } from '../settings/http-options.ts'
import type { Configuration, ConfigurationSections } from '../settings/configuration.ts'
import type { ConfigurationChange, ConfigurationQuestion } from './configuration-question.ts'
import { checkEditable } from './editable-settings.ts'

/** Characters of a value that are logged. */
const loggedValueMax = 1000

export interface ConfigurationAnswerParts {
  readonly configuration: Configuration
  readonly options: Pick<HttpOptions, 'configWhitelist' | 'configBlacklist' | 'sessionSecret' | 'sessionSeconds'>
  readonly control: Pick<ControlPlane, 'state' | 'onChange' | 'setSetting'>
  readonly clock: Pick<Clock, 'now'>
  readonly random: Random
  readonly log: Log
  readonly audit: Audit
}

/** @throws ApiError when a change is refused */
export async function answerConfiguration(
  parts: ConfigurationAnswerParts, question: ConfigurationQuestion,
): Promise<unknown> {
  const { configuration } = parts
  switch (question.action) {
    case 'sections':
      return Object.fromEntries(Object.keys(configuration.sections()).map(name => [name, shown(configuration, name)]))
    case 'section': return shown(configuration, question.section)
    case 'get': return shownValue(configuration, question.section, question.key)
    default: return change(parts, question)
  }
}

/** Makes a change and logs it. Returns the previous value; null when there was none. */
async function change(parts: ConfigurationAnswerParts, question: ConfigurationChange): Promise<string | null> {
  const { configuration, options } = parts
  if (question.action === 'reload') {
    const needRestart = await configuration.reload()
    report(parts, question, {}, 'the configuration was read again')
    if (needRestart.length > 0) {
      parts.log.warn({ ...question.by, options: needRestart }, 'options that files have changed apply after a restart')
    }
    return null
  }
  const { section, key, persist } = question
  checkEditable(options, section, key)
  if (question.action === 'delete') {
    const removed = configuration.get(section, key)
      ?? (persist ? await configuration.removable(section, key) : undefined)
    if (removed === undefined) return null
    await prepareSecrets(parts, section, key, { value: '', persist })
    await configuration.delete(section, key, { persist })
    report(parts, question, { section, key, persist }, 'a setting was removed')
    return hidden(configuration, section, key, removed)
  }
  const { value } = question
  const previous = shownValue(configuration, section, key)
  if (section === 'admins') checkHash(value)
  if (value === hiddenValue && configuration.isSecret(section, key)) {
    throw new ApiError('bad_request', `${section}/${key}: ${hiddenValue} stands for the value, which is not shown`)
  }
  await prepareSecrets(parts, section, key, { value, persist })
  await configuration.set(section, key, value, { persist })
  const isLogged = value === '' || configuration.isLogged(section, key)
  const logged = isLogged ? hideCredentials(value).slice(0, loggedValueMax) : hiddenValue
  report(parts, question, { section, key, value: logged, persist }, 'a setting was changed')
  return previous
}

/** @throws ApiError `bad_request` for a text that is no hash of a password, or one that no login would compute */
function checkHash(value: string): void {
  const hash = parseAdminHash(value)
  if (hash === null) {
    throw new ApiError(
      'bad_request',
      'With raw=true the value must be a password hash, such as -pbkdf2:sha256-{key},{salt},{iterations}.',
    )
  }
  const { passwordIterationsMin: min, passwordIterationsMax: max } = administratorBounds
  if (hash.scheme !== 'simple' && (hash.iterations < min || hash.iterations > max)) {
    throw new ApiError('bad_request', `A password hash of an administrator may have ${min} to ${max} iterations.`)
  }
}

/**
 * Prepares a change of the secret of sessions: lets the sessions of all nodes continue, and sees to it that no earlier
 * secret is used again. If the change is refused or the node stops before it, the present secret stays in use.
 * @param change the value is empty when the setting is removed
 */
async function prepareSecrets(
  parts: ConfigurationAnswerParts, section: string, key: string,
  change: { readonly value: string; readonly persist: boolean },
): Promise<void> {
  const { sessionSecret } = httpDeclarations
  const name = presentName(section, key) ?? { section, key }
  if (name.section !== sessionSecret.section || name.key !== sessionSecret.key) return
  if (change.persist && parts.configuration.isShared(section, key)) await recordPreviousSecrets(parts)
  if (change.value === '') await replaceGeneratedSecret(parts)
}

/** Logs and records a change that was made. */
function report(
  { log, audit }: ConfigurationAnswerParts, { action, by }: ConfigurationChange, details: AuditDetails, message: string,
): void {
  log.info({ ...by, ...details }, message)
  audit.record({ ...by, event: 'configuration_changed', details: { action, ...details } })
}

/** Returns a section with its secrets hidden; an empty one when there is none of that name. */
function shown(configuration: Configuration, name: string): ConfigurationSections[string] {
  const sections = configuration.sections()
  if (!Object.hasOwn(sections, name)) return {}
  return Object.fromEntries(Object.entries(sections[name]!)
    .map(([key, value]) => [key, hidden(configuration, name, key, value)]))
}

function shownValue(configuration: Configuration, section: string, key: string): string | null {
  const value = configuration.get(section, key)
  return value === undefined ? null : hidden(configuration, section, key, value)
}

/** An empty secret is shown, because it is none. */
function hidden(configuration: Configuration, section: string, key: string, value: string): string {
  return value !== '' && configuration.isSecret(section, key) ? hiddenValue : value
}
