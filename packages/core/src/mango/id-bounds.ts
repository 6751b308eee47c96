/** The ids that documents may have that match a selector. */
import type { IdBound } from '../contracts/shard-replica.ts'
import { compareUtf8 } from '../encoding/text-order.ts'
import type { FieldTest, Selector } from '../selectors/selector.ts'
import { isEmptyCombination } from './selector-fields.ts'

/** The ids between two bounds. An absent bound is open. null: no ids. */
type IdInterval = { readonly lower?: IdBound; readonly upper?: IdBound } | null

const all: IdInterval = Object.freeze({})

/**
 * Returns the bounds of a scan of all documents that finds those that match the selector. The bounds are in the
 * direction of the scan: descending, `start` is the greater id. Returns null when no document can match.
 *
 * @param partition only documents of this partition; null: all
 */
export function idBounds(
  selector: Selector, partition: string | null, descending: boolean,
): { readonly start?: IdBound; readonly end?: IdBound } | null {
  const scope: IdInterval = partition === null
    ? all
    : { lower: { id: `${partition}:`, inclusive: true }, upper: { id: `${partition};`, inclusive: false } }
  const ids = isEmptyCombination(selector) ? null : intersection(scope, intervalOf(selector))
  if (ids === null) return null
  const [start, end] = descending ? [ids.upper, ids.lower] : [ids.lower, ids.upper]
  return { ...(start && { start }), ...(end && { end }) }
}

function intervalOf(selector: Selector): IdInterval {
  switch (selector.kind) {
    case 'everything': return all
    case 'and': return selector.operands.map(intervalOf).reduce(intersection, all)
    case 'or': return selector.operands.length === 0 ? all : selector.operands.map(intervalOf).reduce(hull)
    case 'field': {
      const { path, test, negated } = selector
      return negated || path.length !== 1 || path[0] !== '_id' ? all : intervalOfTest(test)
    }
  }
}

function intervalOfTest(test: FieldTest): IdInterval {
  switch (test.operator) {
    case '$eq': return typeof test.value === 'string' ? only(test.value) : null
    case '$in': return test.values.filter(value => typeof value === 'string').map(only).reduce(hull, null)
    case '$lt': return below(test.value, false)
    case '$lte': return below(test.value, true)
    case '$gt': return above(test.value, false)
    case '$gte': return above(test.value, true)
    case '$beginsWith': return startingWith(test.prefix)
    case '$exists': return test.exists ? all : null
    case '$type': return test.type === 'string' ? all : null
    case '$size': case '$mod': case '$all': case '$elemMatch': case '$allMatch': case '$keyMapMatch': return null
    case '$ne': case '$nin': case '$regex': case '$not': return all
  }
}

function only(id: string): IdInterval {
  const bound = { id, inclusive: true }
  return { lower: bound, upper: bound }
}

/** Values of other types are less than each id, arrays and objects included. */
function below(value: unknown, inclusive: boolean): IdInterval {
  return typeof value === 'string' ? { upper: { id: value, inclusive } } : null
}

function above(value: unknown, inclusive: boolean): IdInterval {
  return typeof value === 'string' ? { lower: { id: value, inclusive } } : all
}

function startingWith(prefix: string): IdInterval {
  const upper = afterTextsWith(prefix)
  return { lower: { id: prefix, inclusive: true }, ...(upper !== null && { upper: { id: upper, inclusive: false } }) }
}

const lastCodePoint = 0x10ffff
const beforeSurrogates = 0xd7ff
const afterSurrogates = 0xe000

/** Returns a text that is greater than all texts with the prefix and no other greater text; null: there is none. */
function afterTextsWith(prefix: string): string | null {
  const codePoints = Array.from(prefix, character => character.codePointAt(0)!)
  const at = codePoints.findLastIndex(codePoint => codePoint !== lastCodePoint)
  if (at < 0) return null
  const last = codePoints[at]!
  return codePoints.slice(0, at).map(codePoint => String.fromCodePoint(codePoint)).join('')
    + String.fromCodePoint(last === beforeSurrogates ? afterSurrogates : last + 1)
}

function intersection(a: IdInterval, b: IdInterval): IdInterval {
  if (a === null || b === null) return null
  const lower = stricter(a.lower, b.lower, 1)
  const upper = stricter(a.upper, b.upper, -1)
  if (lower !== undefined && upper !== undefined) {
    const order = compareUtf8(lower.id, upper.id)
    if (order > 0 || (order === 0 && !(lower.inclusive && upper.inclusive))) return null
  }
  return { ...(lower && { lower }), ...(upper && { upper }) }
}

/** @param sign 1 for lower bounds, of which the greater one is stricter; -1 for upper ones */
function stricter(a: IdBound | undefined, b: IdBound | undefined, sign: 1 | -1): IdBound | undefined {
  if (a === undefined || b === undefined) return a ?? b
  const order = sign * compareUtf8(a.id, b.id)
  return order > 0 || (order === 0 && !a.inclusive) ? a : b
}

/** Returns the smallest interval that contains both. */
function hull(a: IdInterval, b: IdInterval): IdInterval {
  if (a === null || b === null) return a ?? b
  const lower = a.lower && b.lower && (stricter(a.lower, b.lower, 1) === a.lower ? b.lower : a.lower)
  const upper = a.upper && b.upper && (stricter(a.upper, b.upper, -1) === a.upper ? b.upper : a.upper)
  return { ...(lower && { lower }), ...(upper && { upper }) }
}
