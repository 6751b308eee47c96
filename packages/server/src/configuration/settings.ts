/** Combines the layers of settings: the defaults, then the files in order, then the environment. */
import { hideCredentials, list, parseValues } from '@sectional/core/options'
import type { OptionTable, OptionValues } from '@sectional/core/options'
import { crossOriginHost, formerSections } from '@sectional/http'
import { declaredOptions, findOpenSection, findOption } from './declarations.ts'
import { parseIni } from './ini-file.ts'
import { shownSetting } from './secret-settings.ts'

/** Section -> key -> text. Names are case-sensitive. */
export type Settings = ReadonlyMap<string, ReadonlyMap<string, string>>

export interface IniFile {
  readonly name: string
  readonly text: string
  /** True for the file of shipped defaults, which is never written. */
  readonly shipped?: true
}

const environmentPrefix = 'SECTIONAL_'

export type EditableSettings = Map<string, Map<string, string>>

/** Combines the declared defaults, the files in ascending order of priority, and the environment. */
export function layerSettings(
  files: readonly IniFile[], environment: Readonly<Record<string, string | undefined>>,
): Settings {
  return effectiveSettings(defaultSettings(files), ownSettings(files, environment))
}

/** Returns the declared defaults and the settings of the shipped file. */
export function defaultSettings(files: readonly IniFile[]): Settings {
  const settings: EditableSettings = new Map()
  for (const { section, key, defaultText } of declaredOptions) {
    if (defaultText !== null) putSetting(settings, section, key, defaultText)
  }
  return combineSettings(settings, ...files.filter(file => file.shipped).map(file => parseIni(file.text)))
}

/** Returns what the operator of the node has set, in files and in the environment. */
export function ownSettings(
  files: readonly IniFile[], environment: Readonly<Record<string, string | undefined>>,
): EditableSettings {
  const settings = combineSettings(...files.filter(file => !file.shipped).map(file => parseIni(file.text)))
  for (const [section, key, value] of environmentSettings(environment)) putSetting(settings, section, key, value)
  for (const [section, keys] of settings) {
    if (findOpenSection(section) === undefined) continue
    for (const [key, value] of keys) if (value === '') keys.delete(key)
  }
  return settings
}

/**
 * Combines the defaults and the layers that somebody has set. An option that is set under a former name only has that
 * value, and keeps the former name, too.
 */
export function effectiveSettings(defaults: Settings, ...layers: readonly Settings[]): EditableSettings {
  const settings = combineSettings(...layers)
  for (const former of formerSections) {
    for (const [key, value] of [...settings.get(former) ?? []]) {
      const option = findOption(former, key)
      if (option === undefined || settings.get(option.section)?.has(option.key)) continue
      putSetting(settings, option.section, option.key, value)
    }
  }
  return combineSettings(defaults, settings)
}

/** Returns a copy of all layers; a later layer overrides an earlier one. */
export function combineSettings(...layers: readonly Settings[]): EditableSettings {
  const settings: EditableSettings = new Map()
  for (const layer of layers) {
    for (const [section, keys] of layer) for (const [key, value] of keys) putSetting(settings, section, key, value)
  }
  return settings
}

export function putSetting(settings: EditableSettings, section: string, key: string, value: string): void {
  const keys = settings.get(section)
  if (keys === undefined) settings.set(section, new Map([[key, value]]))
  else keys.set(key, value)
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

/** Returns the name of the environment variable that sets a value; undefined when there is none. */
export function environmentVariable(
  environment: Readonly<Record<string, string | undefined>>, section: string, key: string,
): string | undefined {
  return Object.keys(environment).find(name =>
    environmentSettings({ [name]: environment[name] }).some(([s, k]) => s === section && k === key))
}

/** Wrong settings, with one line for each, for the person who starts the node. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError'
  /** The option that is wrong, when it is one. */
  readonly option: { readonly section: string; readonly key: string } | undefined

  constructor(message: string, option?: { readonly section: string; readonly key: string }) {
    super(message)
    this.option = option
  }
}

/**
 * Returns the values of a table's options. Checks every declared option, including those of other tables.
 * @throws ConfigurationError with one line per wrong value
 */
export function parseOptions<Table extends OptionTable>(table: Table, settings: Settings): OptionValues<Table> {
  const problems = declaredOptions.flatMap(({ section, key, defaultText }) => {
    const text = settings.get(section)?.get(key)
    const problem = text === undefined ? null : settingProblem(section, key, text)
    return text === undefined || problem === null ? []
      : `[${section}] ${key} = ${shownSetting(section, key, text)}: ${problem}; default "${defaultText ?? ''}"`
  }).concat(openSectionProblems(settings))
  if (problems.length > 0) throw new ConfigurationError(problems.join('\n'))
  return parseValues(table, (section, key) => settings.get(section)?.get(key))
}

function openSectionProblems(settings: Settings): readonly string[] {
  return [...settings].filter(([section]) => findOpenSection(section) !== undefined)
    .flatMap(([section, keys]) => [...keys].flatMap(([key, text]) => {
      const problem = settingProblem(section, key, text)
      return problem === null ? [] : [`[${section}] ${key}: ${problem}`]
    }))
}

/**
 * Returns why a declared option refuses the text, without user names and passwords in URLs; null when it accepts it.
 * Undeclared options accept any text.
 */
export function settingProblem(section: string, key: string, text: string): string | null {
  try {
    findOption(section, key)?.parse(text)
    findOpenSection(section)?.check(key, text)
    return null
  } catch (error) {
    return problemWithoutCredentials(section, key, text, (error as Error).message)
  }
}

function problemWithoutCredentials(section: string, key: string, text: string, problem: string): string {
  if (hideCredentials(text) === text) return problem
  const isList = crossOriginHost(section) !== undefined
    || findOption(section, key)?.kind.startsWith(list.kind) === true
  // The problem may name one item of a list, which is a part of a password that has a comma.
  return isList ? 'user names and passwords in URLs are not allowed' : hideCredentials(problem)
}

/** Returns why HTTP refuses a text that files may have; null when it does not. */
export function settingDefect(section: string, key: string, text: string): string | null {
  return findOption(section, key)?.defect(text) ?? findOpenSection(section)?.defect?.(key, text) ?? null
}

/** Whether a setting can be changed in files only, not over HTTP. */
export function isFilesOnly(section: string, key: string): boolean {
  return findOption(section, key)?.filesOnly === true
}

/** Whether a change of a setting over HTTP applies to all nodes. */
export function isClusterWide(section: string, key: string): boolean {
  return findOpenSection(section) !== undefined || findOption(section, key)?.clusterWide === true
}
