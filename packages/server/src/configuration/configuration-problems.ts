/** Finds what a start of the node would refuse in its settings. */
import { findLine } from './ini-file.ts'
import { nodeOptions } from './node-options.ts'
import { shownSetting } from './secret-settings.ts'
import {
  combineSettings, ConfigurationError, defaultSettings, environmentVariable, layerSettings, ownSettings, settingProblem,
  type IniFile, type Settings,
} from './settings.ts'

/**
 * Returns a line for each wrong setting, with the file and line or the environment variable that sets it, its name, its
 * value and what is allowed. Secrets, also those of administrators and in URLs, are shown as `****`.
 */
export function findProblems(
  files: readonly IniFile[], environment: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  const settings = combineSettings(defaultSettings(files), ownSettings(files, environment))
  const place = (section: string, key: string): string => {
    const variable = environmentVariable(environment, section, key)
    if (variable !== undefined) return variable
    const lines = files.map(({ name, text }) => ({ name, line: findLine(text, section, key) }))
    const last = lines.findLast(({ line }) => line !== undefined)
    return last === undefined ? 'default' : `${last.name} line ${last.line}`
  }
  const wrong = [...settings].flatMap(([section, keys]) => [...keys].flatMap(([key, text]) => {
    const problem = settingProblem(section, key, text)
    return problem === null ? []
      : [`${place(section, key)}: [${section}] ${key} = ${shownSetting(section, key, text)}: ${problem}`]
  }))
  if (wrong.length > 0) return wrong
  const error = startProblem(layerSettings(files, environment))
  if (error === null) return []
  return [error.option ? `${place(error.option.section, error.option.key)}: ${error.message}` : error.message]
}

/** Returns why a node with these settings would not start; null when it would. */
export function startProblem(settings: Settings): ConfigurationError | null {
  try {
    nodeOptions(settings)
    return null
  } catch (error) {
    if (error instanceof ConfigurationError) return error
    throw error
  }
}
