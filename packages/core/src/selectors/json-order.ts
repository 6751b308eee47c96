/** The order of JSON values (api.md B6): null, false, true, numbers, strings, arrays, objects. */

export type CompareStrings = (a: string, b: string) => number

/** By the bytes of UTF-8. */
export function compareStringBytes(a: string, b: string): number {
  return a === b ? 0 : Buffer.compare(Buffer.from(a, 'utf8'), Buffer.from(b, 'utf8'))
}

/** Objects compare member by member in their stored order: name, then value; a shorter one that is a prefix is less. */
export function compareJson(a: unknown, b: unknown, compareStrings: CompareStrings): number {
  const rank = rankOf(a)
  const difference = rank - rankOf(b)
  if (difference !== 0) return difference
  switch (rank) {
    case RANK_NUMBER: return (a as number) - (b as number)
    case RANK_STRING: return compareStrings(a as string, b as string)
    case RANK_ARRAY: return compareLists(a as unknown[], b as unknown[], compareStrings)
    case RANK_OBJECT: return compareLists(Object.entries(a as object), Object.entries(b as object), compareStrings)
    default: return 0
  }
}

const RANK_NUMBER = 3
const RANK_STRING = 4
const RANK_ARRAY = 5
const RANK_OBJECT = 6

function rankOf(value: unknown): number {
  switch (typeof value) {
    case 'boolean': return value ? 2 : 1
    case 'number': return RANK_NUMBER
    case 'string': return RANK_STRING
    default: return value === null ? 0 : Array.isArray(value) ? RANK_ARRAY : RANK_OBJECT
  }
}

function compareLists(a: readonly unknown[], b: readonly unknown[], compareStrings: CompareStrings): number {
  for (let i = 0; i < a.length && i < b.length; i++) {
    const order = compareJson(a[i], b[i], compareStrings)
    if (order !== 0) return order
  }
  return a.length - b.length
}
