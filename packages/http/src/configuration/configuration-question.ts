/** The question `config` that one node asks another, or itself, about its configuration. */
import { ApiError, isJsonObject } from '@sectional/core'

/** Longest name of a user, address or request id that a node writes to its log for another node. */
const authorTextMax = 200

/** The client that changes a setting. The node that makes the change logs it. */
export interface ChangeAuthor {
  readonly user: string
  readonly address: string
  readonly requestId: string
}

export type ConfigurationChange =
  /** The answer is the previous value. */
  | {
    readonly action: 'set'
    readonly section: string
    readonly key: string
    readonly value: string
    readonly persist: boolean
    readonly by: ChangeAuthor
  }
  /** The answer is the previous value. */
  | {
    readonly action: 'delete'
    readonly section: string
    readonly key: string
    readonly persist: boolean
    readonly by: ChangeAuthor
  }
  | { readonly action: 'reload'; readonly by: ChangeAuthor }

/** The answer is JSON: all sections, one section, or one value; a missing value is null. */
export type ConfigurationQuestion =
  | { readonly action: 'sections' }
  | { readonly action: 'section'; readonly section: string }
  | { readonly action: 'get'; readonly section: string; readonly key: string }
  | ConfigurationChange

/**
 * Checks an argument that another node sent, like any other input.
 * @throws ApiError `bad_request`
 */
export function checkConfigurationQuestion(argument: unknown): ConfigurationQuestion {
  if (isJsonObject(argument)) {
    const { action, section, key, value, persist } = argument
    if (action === 'sections') return { action }
    if (action === 'reload') return { action, by: authorOf(argument) }
    if (action === 'section' && typeof section === 'string') return { action, section }
    if (typeof section === 'string' && typeof key === 'string') {
      if (action === 'get') return { action, section, key }
      if (typeof persist === 'boolean') {
        if (action === 'delete') return { action, section, key, persist, by: authorOf(argument) }
        if (action === 'set' && typeof value === 'string') {
          return { action, section, key, value, persist, by: authorOf(argument) }
        }
      }
    }
  }
  throw new ApiError('bad_request', 'not a question about the configuration')
}

function authorOf({ by }: Readonly<Record<string, unknown>>): ChangeAuthor {
  const members = isJsonObject(by) ? by : {}
  const text = (name: string): string => {
    const value = members[name]
    return typeof value === 'string' ? value.slice(0, authorTextMax) : ''
  }
  return { user: text('user'), address: text('address'), requestId: text('requestId') }
}
