/** Finds options that are not declared. They have no effect, and most are typing errors. */
import { closest, distance } from 'fastest-levenshtein'
import type { Log } from '@sectional/runtime'
import { declaredOptions, declaredSections, findOpenSection, findOption } from './declarations.ts'
import type { Settings } from './settings.ts'

/** Names are similar when at most this fraction of their letters differs. */
const differencePartMax = 0.34

/** The configuration of a running node. */
export interface WatchedConfiguration {
  settings(): Settings
  onChange(listener: () => void): () => void
}

/**
 * Logs a warning for each unknown option, now and when a change or a reload brings another one. Returns a function that
 * ends it.
 */
export function warnOfUnknownOptions(configuration: WatchedConfiguration, log: Log): () => void {
  let reported: ReadonlySet<string> = new Set()
  const report = (): void => {
    const names = unknownNames(configuration.settings())
    for (const [section, key] of names) {
      if (reported.has(`${section}/${key}`)) continue
      const nearest = nearestOption(section, key)
      log.warn({ section, key, nearest }, 'an unknown option of the configuration has no effect')
    }
    reported = new Set(names.map(name => name.join('/')))
  }
  report()
  return configuration.onChange(report)
}

export function unknownNames(settings: Settings): readonly (readonly [section: string, key: string])[] {
  return [...settings].filter(([section]) => findOpenSection(section) === undefined).flatMap(([section, keys]) =>
    [...keys.keys()].filter(key => findOption(section, key) === undefined).map(key => [section, key] as const))
}

/** Returns `section/key` of the declared option with the most similar name; undefined when none is similar. */
function nearestOption(section: string, key: string): string | undefined {
  const inSection = (declaredSections.get(section) ?? []).map(option => option.key)
  const similar = similarName(key, inSection)
  if (similar !== undefined) return `${section}/${similar}`
  const elsewhere = declaredOptions.find(option => option.key === key)
  if (elsewhere !== undefined) return elsewhere.name
  return similarName(`${section}/${key}`, declaredOptions.map(option => option.name))
}

function similarName(name: string, candidates: readonly string[]): string | undefined {
  if (candidates.length === 0) return undefined
  const nearest = closest(name, candidates)
  return distance(name, nearest) <= Math.ceil(name.length * differencePartMax) ? nearest : undefined
}
