/** Finds values that HTTP would refuse, but that files may have, because a node with such files has to start. */
import type { Log } from '@sectional/runtime'
import { declaredOptions } from './declarations.ts'
import type { WatchedConfiguration } from './unknown-options.ts'

/**
 * Logs a warning for each such value, now and when a change or a reload brings another one. Returns a function that
 * ends it.
 */
export function warnOfDefects(configuration: WatchedConfiguration, log: Log): () => void {
  let reported: ReadonlySet<string> = new Set()
  const report = (): void => {
    const settings = configuration.settings()
    const found = declaredOptions.flatMap(({ section, key, name, defect }) => {
      const text = settings.get(section)?.get(key)
      const problem = text === undefined ? null : defect(text)
      return problem === null ? [] : [{ section, key, problem, name: `${name}: ${problem}` }]
    })
    for (const { section, key, problem, name } of found) {
      if (reported.has(name)) continue
      log.warn({ section, key, problem }, 'the value of an option should be changed; HTTP would refuse it')
    }
    reported = new Set(found.map(({ name }) => name))
  }
  report()
  return configuration.onChange(report)
}
