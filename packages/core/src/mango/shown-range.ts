/** What a query reads, as CouchDB's `_explain` shows it: one range of keys, of which each column has a bound. */
import { RootTextOrder } from '../collation/root-text-order.ts'
import { formatFieldPath } from '../selectors/field-path.ts'
import { compareJson } from '../selectors/json-order.ts'
import type { FieldTest, Selector } from '../selectors/selector.ts'
import { conditionsOf, isEmptyCombination } from './selector-fields.ts'

/** Each is an array of the values of columns, or of all documents an id or null. Both are null if nothing is read. */
export interface ShownRange { readonly start: unknown; readonly end: unknown }

interface Bound { readonly value: unknown; readonly inclusive: boolean }
/** An absent bound is open. */
interface Bounds { readonly lower?: Bound | undefined; readonly upper?: Bound | undefined }

/** Stands for a value that is greater than all others. */
const greatest = '<MAX>'
/** The greatest character in the order of texts. */
const greatestCharacter = '\uffff'

/** @param fields the columns of the index; null: all documents are read */
export function shownRange(
  selector: Selector, fields: readonly { readonly name: string }[] | null, descending: boolean,
): ShownRange {
  const columns = (fields ?? [{ name: '_id' }]).map(({ name }) => boundsOf(selector, name))
  if (isEmptyCombination(selector) || columns.includes(null)) return { start: null, end: null }
  const lowest = leadingValues(columns.map(column => column?.lower))
  const highest = [...leadingValues(columns.map(column => column?.upper)), greatest]
  const [from, to] = fields === null ? [lowest[0] ?? null, highest[0]] : [lowest, highest]
  return descending ? { start: to, end: from } : { start: from, end: to }
}

function leadingValues(bounds: readonly (Bound | undefined)[]): readonly unknown[] {
  const open = bounds.indexOf(undefined)
  return (open === -1 ? bounds : bounds.slice(0, open)).map(bound => bound!.value)
}

/** Returns null when no value of the field can match. */
function boundsOf(selector: Selector, name: string): Bounds | null {
  const { compare: compareTexts } = new RootTextOrder()
  const compare = (a: Bound, b: Bound): number => compareJson(a.value, b.value, compareTexts)
  let { lower, upper }: Bounds = {}
  for (const { path, test, negated } of conditionsOf(selector)) {
    if (negated || formatFieldPath(path) !== name) continue
    const next = boundsOfTest(test)
    if (next.lower !== undefined) lower = stricter(lower, next.lower, compare)
    if (next.upper !== undefined) upper = stricter(upper, next.upper, (a, b) => compare(b, a))
  }
  if (lower === undefined || upper === undefined) return { lower, upper }
  const order = compare(lower, upper)
  return order > 0 || (order === 0 && !(lower.inclusive && upper.inclusive)) ? null : { lower, upper }
}

function boundsOfTest(test: FieldTest): Bounds {
  switch (test.operator) {
    case '$eq': return { lower: { value: test.value, inclusive: true }, upper: { value: test.value, inclusive: true } }
    case '$gt': case '$gte': return { lower: { value: test.value, inclusive: test.operator === '$gte' } }
    case '$lt': case '$lte': return { upper: { value: test.value, inclusive: test.operator === '$lte' } }
    case '$beginsWith': return {
      lower: { value: test.prefix, inclusive: true },
      upper: { value: test.prefix + greatestCharacter, inclusive: true },
    }
    default: return {}
  }
}

/** @param compare is greater than 0 when the first bound is stricter */
function stricter(a: Bound | undefined, b: Bound, compare: (a: Bound, b: Bound) => number): Bound {
  if (a === undefined) return b
  const order = compare(a, b)
  return order > 0 || (order === 0 && !a.inclusive) ? a : b
}
