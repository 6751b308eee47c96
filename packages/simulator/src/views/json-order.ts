import type { Json } from './view-functions.ts'

/**
 * Compares two JSON values in the order of view keys: null, false, true, numbers, texts, arrays, objects. Texts must
 * consist of full stops, hyphens, underscores, digits and lower-case letters, whose root collation is compared here one
 * character after the other.
 */
export function compareJson(a: Json, b: Json): number {
  const rank = rankOf(a) - rankOf(b)
  if (rank !== 0) return rank
  if (typeof a === 'number') return a - (b as number)
  if (typeof a === 'string') return compareTexts(a, b as string)
  if (Array.isArray(a)) return compareLists(a, b as readonly Json[])
  if (typeof a === 'object' && a !== null) {
    return compareLists(Object.entries(a as object).flat(), Object.entries(b as object).flat())
  }
  return 0
}

const ranks = new Map([...'_-.0123456789abcdefghijklmnopqrstuvwxyz'].map((character, rank) => [character, rank]))

function rankOf(json: Json): number {
  if (json === null) return 0
  if (typeof json === 'boolean') return json ? 2 : 1
  if (typeof json === 'number') return 3
  if (typeof json === 'string') return 4
  return Array.isArray(json) ? 5 : 6
}

function compareTexts(a: string, b: string): number {
  if (a === b) return 0
  for (let at = 0; at < Math.min(a.length, b.length); at++) {
    if (a[at] !== b[at]) return rankOfCharacter(a[at]!) - rankOfCharacter(b[at]!)
  }
  return a.length - b.length
}

function rankOfCharacter(character: string): number {
  const rank = ranks.get(character)
  if (rank === undefined) throw new RangeError(`the order of ${JSON.stringify(character)} is not known here`)
  return rank
}

function compareLists(a: readonly Json[], b: readonly Json[]): number {
  for (let at = 0; at < Math.min(a.length, b.length); at++) {
    const difference = compareJson(a[at]!, b[at]!)
    if (difference !== 0) return difference
  }
  return a.length - b.length
}
