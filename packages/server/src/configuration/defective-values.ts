/** Finds values that HTTP would refuse, but that files may have, because a node with such files has to start. */
import { presentName } from '@sectional/http'
import type { Log } from '@sectional/runtime'
import { settingDefect } from './settings.ts'
import type { WatchedConfiguration } from './unknown-options.ts'

/**
 * Logs a warning for each such value, now and when a change or a reload brings another one. Returns a function that
 * ends it.
 */
export function warnOfDefects(configuration: WatchedConfiguration, log: Log): () => void {
  let reported: ReadonlySet<string> = new Set()
  const report = (): void => {
    const found = [...configuration.settings()].flatMap(([section, keys]) => [...keys].flatMap(([key, text]) => {
      const problem = presentName(section, key) === null ? settingDefect(section, key, text) : null
      return problem === null ? [] : [{ section, key, problem, name: `${section}/${key}: ${problem}` }]
    }))
    for (const { section, key, problem, name } of found) {
      if (reported.has(name)) continue
      log.warn({ section, key, problem }, 'the value of an option should be changed; HTTP would refuse it')
    }
    reported = new Set(found.map(({ name }) => name))
  }
  report()
  return configuration.onChange(report)
}
