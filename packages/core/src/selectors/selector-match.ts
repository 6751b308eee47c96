import { fieldAt } from './field-path.ts'
import { compareJson, compareStringBytes, type CompareStrings } from './json-order.ts'
import type { ComparisonOperator, FieldTest, Selector } from './selector.ts'

/**
 * Whether a document (with its `_id`, `_rev` and other special members) fits.
 *
 * @param compareStrings order of strings, and which are equal. The specification's is ICU's root collation, which
 *   is not there yet: the default orders by bytes, so that case and accents sort unlike CouchDB's. `_id` always
 *   compares by bytes.
 */
export function matchesSelector(selector: Selector, document: unknown, compareStrings: CompareStrings = compareStringBytes): boolean {
  switch (selector.kind) {
    case 'and': return selector.operands.every(operand => matchesSelector(operand, document, compareStrings))
    case 'or': return selector.operands.length === 0 || selector.operands.some(operand => matchesSelector(operand, document, compareStrings))
    case 'field': {
      const { path, test, negated } = selector
      const field = fieldAt(document, path)
      if (test.operator === '$exists') return test.exists ? field.kind === 'found' : field.kind === 'missing'
      if (field.kind !== 'found') return false
      const compare = path.length === 1 && path[0] === '_id' ? compareStringBytes : compareStrings
      return matchesTest(test, field.value, compare) !== negated
    }
  }
}

function matchesTest(test: FieldTest, value: unknown, compare: CompareStrings): boolean {
  switch (test.operator) {
    case '$in': return isOneOf(value, test.values, compare)
    case '$nin': return !isOneOf(value, test.values, compare)
    case '$all': return holdsAll(value, test.values)
    case '$type': return typeName(value) === test.type
    case '$size': return Array.isArray(value) && value.length === test.size
    // The sign of a divisor does not matter to the remainder of a truncating division.
    case '$mod': return typeof value === 'number' && Number.isInteger(value) && value % test.divisor === test.remainder
    case '$regex': return typeof value === 'string' && test.pattern.test(value)
    case '$beginsWith': return typeof value === 'string' && value.startsWith(test.prefix)
    case '$elemMatch': return Array.isArray(value) && value.some(element => matchesSelector(test.selector, element, compare))
    case '$allMatch': return Array.isArray(value) && value.length > 0 && value.every(element => matchesSelector(test.selector, element, compare))
    case '$keyMapMatch': return typeName(value) === 'object' && Object.keys(value as object).some(key => matchesSelector(test.selector, key, compare))
    case '$exists': return test.exists
    default: return matchesOrder(test.operator, compareJson(value, test.value, compare))
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

/** The value, or an element of it. */
function isOneOf(value: unknown, values: readonly unknown[], compare: CompareStrings): boolean {
  const among = (candidate: unknown): boolean => values.some(each => compareJson(candidate, each, compare) === 0)
  return among(value) || (Array.isArray(value) && value.some(among))
}

/** Every listed value is an element; a single listed array may also be the value itself. */
function holdsAll(value: unknown, values: readonly unknown[]): boolean {
  if (!Array.isArray(value) || values.length === 0) return false
  const equal = (a: unknown, b: unknown): boolean => compareJson(a, b, compareStringBytes) === 0
  if (values.length === 1 && Array.isArray(values[0]) && equal(value, values[0])) return true
  return values.every(each => value.some(element => equal(element, each)))
}

function typeName(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
}
