/** Finds options that are not declared. They have no effect, and most are typing errors. */
import { closest, distance } from 'fastest-levenshtein'
import { declaredOptions, declaredSections, findOpenSection, findOption } from './declarations.ts'
import type { Settings } from './settings.ts'

/** Names are similar when at most this fraction of their letters differs. */
const differencePartMax = 0.34

export interface UnknownOption {
  readonly section: string
  readonly key: string
  /** `section/key` of the declared option with the most similar name; undefined when none is similar. */
  readonly nearest: string | undefined
}

export function unknownOptions(settings: Settings): readonly UnknownOption[] {
  return [...settings].filter(([section]) => findOpenSection(section) === undefined).flatMap(([section, keys]) =>
    [...keys.keys()].filter(key => findOption(section, key) === undefined)
      .map(key => ({ section, key, nearest: nearestOption(section, key) })))
}

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
