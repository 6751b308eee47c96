/** Layers of settings: defaults, then files in order, then the environment. */
import { parseValues } from '@sectional/core/options'
import type { OptionTable, OptionValues } from '@sectional/core/options'
import { declaredOptions, findOption } from './declarations.ts'
import { parseIni } from './ini-file.ts'

/** section -> key -> text. Names keep their case. */
export type Settings = ReadonlyMap<string, ReadonlyMap<string, string>>

export interface IniFile {
  readonly name: string
  readonly text: string
  /** The shipped defaults: read, never written. */
  readonly shipped?: true
}

const environmentPrefix = 'SECTIONAL_'

/** Later layers win. */
export function layerSettings(
  files: readonly IniFile[], environment: Readonly<Record<string, string | undefined>>,
): Settings {
  const settings = new Map<string, Map<string, string>>()
  const put = (section: string, key: string, value: string) => {
    const keys = settings.get(section) ?? new Map<string, string>()
    settings.set(section, keys.set(key, value))
  }
  for (const { section, key, defaultText } of declaredOptions) if (defaultText !== null) put(section, key, defaultText)
  for (const file of files) {
    for (const [section, keys] of parseIni(file.text)) for (const [key, value] of keys) put(section, key, value)
  }
  for (const [section, key, value] of environmentSettings(environment)) put(section, key, value)
  return settings
}

/**
 * `SECTIONAL_CHTTPD__PORT=5984` sets chttpd/port: two underscores between section and key, both in lower case; a
 * key with a small letter keeps its case (`SECTIONAL_ADMINS__Anna`). Names without two underscores are not settings.
 */
function environmentSettings(environment: Readonly<Record<string, string | undefined>>): [string, string, string][] {
  return Object.entries(environment).sort(([a], [b]) => a < b ? -1 : 1).flatMap(([name, value]) => {
    const [section, ...rest] = name.startsWith(environmentPrefix)
      ? name.slice(environmentPrefix.length).split('__')
      : []
    const key = rest.join('__')
    if (!section || !key || value === undefined) return []
    return [[section.toLowerCase(), /[a-z]/.test(key) ? key : key.toLowerCase(), value.trim()]]
  })
}

/** Wrong settings: one line each, for the person who starts the node. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError'
}

/**
 * The values of a table's options. Every declared option is checked, those of other tables too.
 * @throws ConfigurationError with one line per wrong value
 */
export function parseOptions<Table extends OptionTable>(table: Table, settings: Settings): OptionValues<Table> {
  const problems = declaredOptions.flatMap(({ section, key, defaultText, secret }) => {
    const text = settings.get(section)?.get(key)
    const problem = text === undefined ? null : settingProblem(section, key, text)
    const shown = secret ? '****' : `"${text}"`
    return problem === null ? [] : `[${section}] ${key} = ${shown}: ${problem}; default "${defaultText}"`
  })
  if (problems.length > 0) throw new ConfigurationError(problems.join('\n'))
  return parseValues(table, (section, key) => settings.get(section)?.get(key))
}

/** Why a declared option refuses the text, or null. Undeclared ones take anything. */
export function settingProblem(section: string, key: string, text: string): string | null {
  try {
    findOption(section, key)?.parse(text)
    return null
  } catch (error) {
    return (error as Error).message
  }
}
