/** Combines the layers of settings: the defaults, then the files in order, then the environment. */
import { parseValues } from '@sectional/core/options'
import type { OptionTable, OptionValues } from '@sectional/core/options'
import { declaredOptions, findOption, openSections } from './declarations.ts'
import { parseIni } from './ini-file.ts'

/** Section -> key -> text. Names are case-sensitive. */
export type Settings = ReadonlyMap<string, ReadonlyMap<string, string>>

export interface IniFile {
  readonly name: string
  readonly text: string
  /** True for the file of shipped defaults, which is never written. */
  readonly shipped?: true
}

const environmentPrefix = 'SECTIONAL_'

/** Combines the layers; a later layer overrides an earlier one. */
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
 * Returns the settings of the environment: `SECTIONAL_CHTTPD__PORT=5984` sets chttpd/port. Two underscores separate
 * section and key, and both are converted to lower case, except a key that contains a lower-case letter
 * (`SECTIONAL_ADMINS__Anna`). Variables without two underscores are not settings.
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

/** Wrong settings, with one line for each, for the person who starts the node. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError'
}

/**
 * Returns the values of a table's options. Checks every declared option, including those of other tables.
 * @throws ConfigurationError with one line per wrong value
 */
export function parseOptions<Table extends OptionTable>(table: Table, settings: Settings): OptionValues<Table> {
  const problems = declaredOptions.flatMap(({ section, key, defaultText, secret }) => {
    const text = settings.get(section)?.get(key)
    const problem = text === undefined ? null : settingProblem(section, key, text)
    const shown = secret ? '****' : `"${text}"`
    return problem === null ? [] : `[${section}] ${key} = ${shown}: ${problem}; default "${defaultText}"`
  }).concat(openSectionProblems(settings))
  if (problems.length > 0) throw new ConfigurationError(problems.join('\n'))
  return parseValues(table, (section, key) => settings.get(section)?.get(key))
}

function openSectionProblems(settings: Settings): readonly string[] {
  return Object.keys(openSections).flatMap(section => [...settings.get(section) ?? []].flatMap(([key, text]) => {
    const problem = settingProblem(section, key, text)
    return problem === null ? [] : [`[${section}] ${key}: ${problem}`]
  }))
}

/** Returns why a declared option refuses the text; null when it accepts it. Undeclared options accept any text. */
export function settingProblem(section: string, key: string, text: string): string | null {
  try {
    findOption(section, key)?.parse(text)
    openSections[section]?.check(key, text)
    return null
  } catch (error) {
    return (error as Error).message
  }
}

/** Whether the value of a setting is a secret, which must not be shown or logged. */
export function isSecretSetting(section: string, key: string): boolean {
  return openSections[section]?.secret === true || findOption(section, key)?.secret === true
}
