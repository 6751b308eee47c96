/**
 * The order of JSON values (docs/reference/changes.md#selectors): null, false, true, numbers, strings, arrays,
 * objects.
 */

import type { Effort } from './effort.ts'

export type CompareStrings = (a: string, b: string) => number

type Members = Readonly<Record<string, unknown>>

/** Compares two strings by the bytes of their UTF-8. */
export function compareStringBytes(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let at = 0; at < length; at++) {
    const unit = a.charCodeAt(at)
    const other = b.charCodeAt(at)
    if (unit !== other) return byteOrder(unit) - byteOrder(other)
  }
  return a.length - b.length
}

/** Maps a UTF-16 unit to its order in UTF-8, where characters above U+FFFF (surrogates in UTF-16) come last. */
function byteOrder(unit: number): number {
  return unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x10000 : unit
}

/**
 * Compares two JSON values. Objects are compared member by member in their stored order, by name and then by value; an
 * object that is a prefix of the other one is less.
 *
 * @param effort is charged for the comparison
 */
export function compareJson(a: unknown, b: unknown, compareStrings: CompareStrings, effort?: Effort): number {
  const rank = jsonRank(a)
  const difference = rank - jsonRank(b)
  if (difference !== 0) return difference
  switch (rank) {
    case rankNumber: return (a as number) - (b as number)
    case rankString:
      effort?.spendText(Math.min((a as string).length, (b as string).length))
      return compareStrings(a as string, b as string)
    case rankArray: return compareLists(a as unknown[], b as unknown[], compareStrings, effort)
    case rankObject: return compareObjects(a as Members, b as Members, compareStrings, effort)
    default: return 0
  }
}

const rankNumber = 3
const rankString = 4
const rankArray = 5
const rankObject = 6

/** Returns the place of the value's type in the order of JSON values. */
export function jsonRank(value: unknown): number {
  switch (typeof value) {
    case 'boolean': return value ? 2 : 1
    case 'number': return rankNumber
    case 'string': return rankString
    default: return value === null ? 0 : Array.isArray(value) ? rankArray : rankObject
  }
}

/**
 * Compares the value of `_id` with another value as CouchDB does: texts by their bytes, and all other values are less
 * than texts.
 */
export function compareIds(a: unknown, b: unknown, effort?: Effort): number {
  const isText = typeof a === 'string'
  if (isText !== (typeof b === 'string')) return isText ? 1 : -1
  return compareJson(a, b, compareStringBytes, effort)
}

function compareObjects(a: Members, b: Members, compareStrings: CompareStrings, effort: Effort | undefined): number {
  const names = Object.keys(a)
  const others = Object.keys(b)
  effort?.spendNames(names.length + others.length)
  for (let i = 0; i < names.length && i < others.length; i++) {
    const order = compareStrings(names[i]!, others[i]!)
      || compareJson(a[names[i]!], b[others[i]!], compareStrings, effort)
    if (order !== 0) return order
  }
  return names.length - others.length
}

function compareLists(
  a: readonly unknown[], b: readonly unknown[], compareStrings: CompareStrings, effort: Effort | undefined,
): number {
  for (let i = 0; i < a.length && i < b.length; i++) {
    effort?.spend(1)
    const order = compareJson(a[i], b[i], compareStrings, effort)
    if (order !== 0) return order
  }
  return a.length - b.length
}
