/**
 * What selectors mean and how values are ordered, as the reference says it and without any index. It shares no code
 * with the server, and makes no attempt to be fast.
 */

type Json = Readonly<Record<string, unknown>>

const collator = new Intl.Collator('und')

/** Whether a document matches a selector. */
export function matchesNaively(selector: Json, document: unknown): boolean {
  return matches(selector, document, [], false)
}

/**
 * @param path the field that enclosing members name
 * @param negated whether the negation is asked for: it is not the opposite, because missing fields fail both
 */
function matches(selector: unknown, document: unknown, path: readonly string[], negated: boolean): boolean {
  if (!isObject(selector)) return test('$eq', selector, document, path, negated)
  const members = Object.entries(selector)
  if (members.length === 0) return path.length > 0 ? test('$eq', {}, document, path, negated) : !negated
  const results = members.map(([name, argument]) => matchesMember(name, argument, document, path, negated))
  return negated ? results.includes(true) : !results.includes(false)
}

function matchesMember(
  name: string, argument: unknown, document: unknown, path: readonly string[], negated: boolean,
): boolean {
  const each = (not: boolean): boolean[] =>
    (argument as readonly unknown[]).map(part => matches(part, document, path, not))
  switch (name) {
    case '$not': return matches(argument, document, path, !negated)
    case '$and': return negated ? each(true).includes(true) : !each(false).includes(false)
    case '$or': return negated ? !each(true).includes(false) : each(false).includes(true)
    case '$nor': return negated ? each(false).includes(true) : !each(true).includes(false)
    default: return name.startsWith('$')
      ? test(name, argument, document, path, negated)
      : matches(argument, document, [...path, ...name.split('.')], negated)
  }
}

function test(
  operator: string, argument: unknown, document: unknown, path: readonly string[], negated: boolean,
): boolean {
  const { value, isMissing, isBlocked } = follow(document, path)
  if (operator === '$exists') return !isBlocked && isMissing !== (argument !== negated)
  if (isMissing || isBlocked) return false
  const order = path.join() === '_id' ? orderOfIds : orderOf
  return passes(operator, argument, value, order) !== negated
}

function passes(operator: string, argument: unknown, value: unknown, order: typeof orderOf): boolean {
  const elements = Array.isArray(value) ? value : []
  // $in compares the elements of an array, but not the array as a whole: [] is in no list.
  const isIn = (): boolean => (Array.isArray(value) ? elements : [value])
    .some(each => (argument as readonly unknown[]).some(one => order(each, one) === 0))
  switch (operator) {
    case '$eq': return order(value, argument) === 0
    case '$ne': return order(value, argument) !== 0
    case '$lt': return order(value, argument) < 0
    case '$lte': return order(value, argument) <= 0
    case '$gt': return order(value, argument) > 0
    case '$gte': return order(value, argument) >= 0
    case '$in': return isIn()
    case '$nin': return !isIn()
    case '$type': return typeOf(value) === argument
    case '$size': return Array.isArray(value) && value.length === argument
    case '$mod': {
      const [divisor, remainder] = argument as [number, number]
      return Number.isInteger(value) && (value as number) % divisor === remainder
    }
    case '$beginsWith': return typeof value === 'string' && value.startsWith(argument as string)
    case '$regex': return typeof value === 'string' && new RegExp(argument as string, 'u').test(value)
    case '$elemMatch': return elements.some(element => matches(argument, element, [], false))
    case '$allMatch':
      return elements.length > 0 && elements.every(element => matches(argument, element, [], false))
    default: throw new Error(`no operator ${operator}`)
  }
}

/** Returns the value at a path. `isBlocked`: the path leads through something that has no members. */
function follow(
  document: unknown, path: readonly string[],
): { readonly value?: unknown; readonly isMissing: boolean; readonly isBlocked: boolean } {
  let value = document
  for (const step of path) {
    const isIndex = Array.isArray(value) && /^\d+$/.test(step) && Number(step) < value.length
    if (!isObject(value) && !isIndex) return { isMissing: false, isBlocked: true }
    if (!Object.hasOwn(value as object, step)) return { isMissing: true, isBlocked: false }
    value = (value as Json)[step]
  }
  return { value, isMissing: false, isBlocked: false }
}

/** Returns the values of fields, or undefined when one of them is missing. */
export function valuesOf(document: unknown, fields: readonly string[]): readonly unknown[] | undefined {
  const found = fields.map(field => follow(document, field.split('.')))
  return found.every(({ isMissing, isBlocked }) => !isMissing && !isBlocked)
    ? found.map(({ value }) => value)
    : undefined
}

/** The order of values in indexes: null, false, true, numbers, texts by the root collation, arrays, objects. */
export function orderOf(a: unknown, b: unknown): number {
  const rank = rankOf(a) - rankOf(b)
  if (rank !== 0) return rank
  if (typeof a === 'number') return a - (b as number)
  if (typeof a === 'string') return collator.compare(a, b as string)
  if (Array.isArray(a)) return orderOfLists(a, b as readonly unknown[])
  return isObject(a) ? orderOfLists(Object.entries(a), Object.entries(b as Json)) : 0
}

function orderOfLists(a: readonly unknown[], b: readonly unknown[]): number {
  for (let at = 0; at < Math.min(a.length, b.length); at++) {
    const order = orderOf(a[at], b[at])
    if (order !== 0) return order
  }
  return a.length - b.length
}

/** Ids are compared by their bytes, and are greater than all values that are not texts. */
export function orderOfIds(a: unknown, b: unknown): number {
  return typeof b === 'string' ? Buffer.compare(Buffer.from(a as string), Buffer.from(b)) : 1
}

function rankOf(value: unknown): number {
  return value === false ? 1 : value === true ? 2
    : ['null', 'boolean', '', 'number', 'string', 'array', 'object'].indexOf(typeOf(value))
}

function typeOf(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
