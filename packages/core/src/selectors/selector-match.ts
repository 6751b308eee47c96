import { RootTextOrder } from '../collation/root-text-order.ts'
import { Effort } from './effort.ts'
import { fieldAt } from './field-path.ts'
import { compareIds, compareJson, compareStringBytes } from './json-order.ts'
import type { ComparisonOperator, FieldTest, Selector } from './selector.ts'
import { testPlainly, type TestInTime } from './text-pattern.ts'

/** The state of matching one document. */
interface Attempt {
  readonly compare: (a: unknown, b: unknown, effort: Effort) => number
  readonly testInTime: TestInTime
  readonly effort: Effort
}

const rootOrder = new RootTextOrder()

/**
 * Whether a document, with its `_id`, `_rev` and other special members, matches. This is the plain definition of what
 * selectors mean, for implementations in memory and for tests; `compileSelector` is faster.
 *
 * @throws SelectorError when the matching takes more than `selectorStepsMax` steps
 */
export function matchesSelector(selector: Selector, document: unknown): boolean {
  return matches(selector, document, {
    compare: compareValues, testInTime: testPlainly, effort: new Effort('Matching a document'),
  })
}

function compareValues(a: unknown, b: unknown, effort: Effort): number {
  return compareJson(a, b, rootOrder.compare, effort)
}

function matches(selector: Selector, document: unknown, matching: Attempt): boolean {
  matching.effort.spend(1)
  switch (selector.kind) {
    case 'everything': return true
    case 'and': return selector.operands.every(operand => matches(operand, document, matching))
    case 'or':
      return selector.operands.length === 0 || selector.operands.some(operand => matches(operand, document, matching))
    case 'field': {
      const { path, test, negated } = selector
      matching.effort.spend(path.length)
      const field = fieldAt(document, path)
      if (test.operator === '$exists') return test.exists ? field.kind === 'found' : field.kind === 'missing'
      if (field.kind !== 'found') return false
      const isId = path.length === 1 && path[0] === '_id'
      return matchesTest(test, field.value, isId
        ? { ...matching, compare: compareIds }
        : matching) !== negated
    }
  }
}

function matchesTest(test: FieldTest, value: unknown, matching: Attempt): boolean {
  const { compare, testInTime, effort } = matching
  switch (test.operator) {
    case '$in': return isOneOf(value, test.values, compare, effort)
    case '$nin': return !isOneOf(value, test.values, compare, effort)
    case '$all': return holdsAll(value, test.values, effort)
    case '$type': return typeName(value) === test.type
    case '$size': return Array.isArray(value) && value.length === test.size
    // The sign of the divisor does not affect the remainder, because the division truncates.
    case '$mod': return typeof value === 'number' && Number.isInteger(value) && value % test.divisor === test.remainder
    case '$regex': return typeof value === 'string' && test.pattern.test(value, testInTime, effort)
    case '$beginsWith': return typeof value === 'string' && beginsWith(value, test.prefix, effort)
    case '$elemMatch': return Array.isArray(value) && value.some(element => matches(test.selector, element, matching))
    case '$allMatch':
      return Array.isArray(value) && value.length > 0
        && value.every(element => matches(test.selector, element, matching))
    case '$keyMapMatch':
      return typeName(value) === 'object'
        && namesOf(value as object, effort).some(key => matches(test.selector, key, matching))
    case '$not': return !matches(test.selector, value, matching)
    case '$exists': return test.exists
    default: return matchesOrder(test.operator, compare(value, test.value, effort))
  }
}

function matchesOrder(operator: ComparisonOperator, order: number): boolean {
  switch (operator) {
    case '$eq': return order === 0
    case '$ne': return order !== 0
    case '$lt': return order < 0
    case '$lte': return order <= 0
    case '$gt': return order > 0
    case '$gte': return order >= 0
  }
}

/** Whether the value equals one of `values`. Of an array, an element must. */
function isOneOf(value: unknown, values: readonly unknown[], compare: Attempt['compare'], effort: Effort): boolean {
  const among = (candidate: unknown): boolean => values.some(each => isEqual(candidate, each, compare, effort))
  return Array.isArray(value) ? value.some(among) : among(value)
}

function compareBytes(a: unknown, b: unknown, effort: Effort): number {
  return compareJson(a, b, compareStringBytes, effort)
}

/** Whether each of `values` is an element of the array `value`. A single array in `values` may also equal `value`. */
function holdsAll(value: unknown, values: readonly unknown[], effort: Effort): boolean {
  if (!Array.isArray(value) || values.length === 0) return false
  const equal = (a: unknown, b: unknown): boolean => isEqual(a, b, compareBytes, effort)
  if (values.length === 1 && Array.isArray(values[0]) && equal(value, values[0])) return true
  return values.every(each => value.some(element => equal(element, each)))
}

function beginsWith(value: string, prefix: string, effort: Effort): boolean {
  effort.spendText(Math.min(value.length, prefix.length))
  return value.startsWith(prefix)
}

function isEqual(a: unknown, b: unknown, compare: Attempt['compare'], effort: Effort): boolean {
  effort.spend(1)
  return compare(a, b, effort) === 0
}

function namesOf(value: object, effort: Effort): readonly string[] {
  const names = Object.keys(value)
  effort.spendNames(names.length)
  return names
}

function typeName(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
}
