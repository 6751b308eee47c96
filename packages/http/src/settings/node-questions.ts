/**
 * Questions of the HTTP API about a node. They are answered locally for this node, and sent over the control link for
 * another one. Both ends are in this file so that they agree.
 */
import { ApiError, type NodeQuestion, isJsonObject } from '@sectional/core'
import type { ControlPlane } from '@sectional/cluster'
import type { Configuration, ConfigurationSections } from './configuration.ts'
import type { NodeInformation } from './node-information.ts'

/**
 * Argument of the question `config`. The answer is JSON: all sections, one section, or one value; a missing value is
 * null.
 */
export type ConfigurationQuestion =
  | { readonly action: 'sections' }
  | { readonly action: 'section'; readonly section: string }
  | { readonly action: 'get'; readonly section: string; readonly key: string }
  /** The answer is the previous value. */
  | {
    readonly action: 'set'
    readonly section: string
    readonly key: string
    readonly value: string
    readonly persist: boolean
  }
  /** The answer is the previous value. */
  | { readonly action: 'delete'; readonly section: string; readonly key: string; readonly persist: boolean }
  | { readonly action: 'reload' }

/** Shown instead of a secret. */
const hiddenValue = '****'

interface Asking {
  readonly control: ControlPlane
  readonly nodeInformation: NodeInformation
  readonly configuration: Configuration
}

/**
 * Asks a node.
 * @param node a member's name, or `_local`
 * @throws ApiError `not_found` when it is not a member, `nodedown` when there is no link to it
 */
export async function askNode(
  asking: Asking, node: string, question: NodeQuestion, argument: unknown,
): Promise<unknown> {
  const { control } = asking
  if (node === '_local' || node === control.node) return answerNodeQuestion(asking, question, argument)
  const members = control.state()?.nodes ?? {}
  if (!Object.hasOwn(members, node)) throw new ApiError('not_found', `no such node: ${node}`)
  if (!control.connectedNodes().includes(node)) throw new ApiError('nodedown', `${node} is down`)
  return control.ask(node, question, argument)
}

/** Returns this node's answer as JSON. `ControlPeer.ask` uses it to answer other nodes. */
export async function answerNodeQuestion(
  { nodeInformation, configuration }: Omit<Asking, 'control'>, question: NodeQuestion, argument: unknown,
): Promise<unknown> {
  switch (question) {
    case 'stats': return nodeInformation.statistics()
    case 'system': return nodeInformation.system()
    case 'prometheus': return nodeInformation.prometheus()
    case 'versions': return nodeInformation.versions()
    case 'active-tasks': return nodeInformation.activeTasks()
    case 'replicas': return nodeInformation.replicas(checkDatabase(argument))
    case 'config': return answerConfiguration(configuration, checkQuestion(argument))
  }
}

async function answerConfiguration(configuration: Configuration, question: ConfigurationQuestion): Promise<unknown> {
  switch (question.action) {
    case 'sections':
      return Object.fromEntries(Object.keys(configuration.sections()).map(name => [name, shown(configuration, name)]))
    case 'section': return shown(configuration, question.section)
    case 'get': return shownValue(configuration, question.section, question.key)
    case 'reload':
      await configuration.reload()
      return null
    case 'set':
    case 'delete': {
      const { section, key, persist } = question
      const previous = shownValue(configuration, section, key)
      if (question.action === 'set') await setValue(configuration, question)
      else if (previous !== null) await configuration.delete(section, key, { persist })
      return previous
    }
  }
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

/** An unset secret is shown as the empty text that it is. */
function hidden(configuration: Configuration, section: string, key: string, value: string): string {
  return value !== '' && configuration.isSecret(section, key) ? hiddenValue : value
}

/** @throws ApiError `bad_request` for the text that stands for a hidden secret, which a client has copied */
async function setValue(
  configuration: Configuration, { section, key, value, persist }: Extract<ConfigurationQuestion, { action: 'set' }>,
): Promise<void> {
  if (value === hiddenValue && configuration.isSecret(section, key)) {
    throw new ApiError('bad_request', `${section}/${key}: ${hiddenValue} stands for the value, which is not shown`)
  }
  await configuration.set(section, key, value, { persist })
}

function checkDatabase(argument: unknown): string {
  if (typeof argument === 'string') return argument
  throw new ApiError('bad_request', 'not the name of a database')
}

/** Checks an argument that another node sent, like any other input. */
function checkQuestion(argument: unknown): ConfigurationQuestion {
  if (isJsonObject(argument)) {
    const { action, section, key, value, persist } = argument
    if (action === 'sections' || action === 'reload') return { action }
    if (action === 'section' && typeof section === 'string') return { action, section }
    if (typeof section === 'string' && typeof key === 'string') {
      if (action === 'get') return { action, section, key }
      if (action === 'delete' && typeof persist === 'boolean') return { action, section, key, persist }
      if (action === 'set' && typeof value === 'string' && typeof persist === 'boolean') {
        return { action, section, key, value, persist }
      }
    }
  }
  throw new ApiError('bad_request', 'not a question about the configuration')
}
