/**
 * Parses the selectors of `_find` and of the changes feed (docs/reference/changes.md#selectors) into a normal form.
 * Nested objects become paths, several conditions become an `and`, and only single conditions are negated.
 */
import { isJsonObject } from '../json/json-text.ts'
import { shortJson } from '../json/short-json.ts'
import { Effort } from './effort.ts'
import { type FieldPath, parseFieldPath } from './field-path.ts'
import { SelectorError } from './selector-error.ts'
import { TextPattern } from './text-pattern.ts'

export type ComparisonOperator = '$eq' | '$ne' | '$lt' | '$lte' | '$gt' | '$gte'

/** A test of the value at a path. */
export type FieldTest =
  | { readonly operator: ComparisonOperator; readonly value: unknown }
  | { readonly operator: '$in' | '$nin' | '$all'; readonly values: readonly unknown[] }
  | { readonly operator: '$exists'; readonly exists: boolean }
  | { readonly operator: '$type'; readonly type: string }
  | { readonly operator: '$size'; readonly size: number }
  | { readonly operator: '$mod'; readonly divisor: number; readonly remainder: number }
  | { readonly operator: '$regex'; readonly pattern: TextPattern }
  | { readonly operator: '$beginsWith'; readonly prefix: string }
  | { readonly operator: '$elemMatch' | '$allMatch' | '$keyMapMatch'; readonly selector: Selector }
  /** The value does not match the selector. Only of elements and keys, whose path is empty. */
  | { readonly operator: '$not'; readonly selector: Selector }

export type Selector =
  /**
   * All are true when they have no operands. But a query whose whole selector is an `and` or `or` without operands
   * finds nothing, as in CouchDB; the empty selector is `everything`, which never has operands.
   */
  | { readonly kind: 'and' | 'or' | 'everything'; readonly operands: readonly Selector[] }
  /**
   * An empty path denotes the value itself (an array's element, an object's key). `negated`: true when the value exists
   * and fails the test.
   */
  | { readonly kind: 'field'; readonly path: FieldPath; readonly test: FieldTest; readonly negated: boolean }

/** The selector `{}`. */
export const everything: Selector = Object.freeze({ kind: 'everything', operands: [] })

function hasId(exists: boolean): Selector {
  return { kind: 'field', path: ['_id'], test: { operator: '$exists', exists }, negated: false }
}

/**
 * What `{}` means as a part of a selector: CouchDB demands that the document equals `{}`, which no document does. So
 * its negation is true for all documents.
 */
const nothing: Selector = Object.freeze({ kind: 'and', operands: [hasId(true), hasId(false)] })

/**
 * @param conditionsMax the largest number of conditions, those of elements and keys included
 * @throws SelectorError, also when the parse takes more than `selectorStepsMax` steps
 */
export function parseSelector(value: unknown, conditionsMax = Infinity): Selector {
  if (!isJsonObject(value)) {
    const shown = shortJson(value, shownMax)
    throw new SelectorError('invalid_selector_json', `Selector must be a JSON object, not: ${shown}`)
  }
  if (Object.keys(value).length === 0) return everything
  const effort = new Effort('Reading the selector')
  const selector = readSelector(value, null, { effort, isOfElement: false })
  if (conditionsMax < Infinity) checkConditions(countConditions(selector), conditionsMax)
  return selector
}

function checkConditions(conditions: number, conditionsMax: number): void {
  if (conditions <= conditionsMax) return
  const limit = `at most ${conditionsMax} are allowed (mango/selector_conditions_max)`
  const advice = '$in and $nin test many values in one condition'
  throw new SelectorError('bad_arg', `The selector has ${conditions} conditions, and ${limit}; ${advice}.`)
}

/** Returns the number of tests of values in a selector, those of elements and keys included. */
function countConditions(selector: Selector): number {
  if (selector.kind !== 'field') return selector.operands.reduce((sum, operand) => sum + countConditions(operand), 0)
  return 'selector' in selector.test ? 1 + countConditions(selector.test.selector) : 1
}

interface Reading {
  readonly effort: Effort
  /**
   * Whether the selector is that of an element or key. CouchDB does not move negations inwards there, so that an
   * element without the field matches `{"$not":{"field":1}}`, which a document without it does not.
   */
  readonly isOfElement: boolean
}

const unsupported = new Set(['$where', '$geoWithin', '$geoIntersects', '$near', '$nearSphere', '$text'])
const negatedOperators: Readonly<Record<string, FieldTest['operator']>> = {
  $eq: '$ne', $ne: '$eq', $lt: '$gte', $gte: '$lt', $gt: '$lte', $lte: '$gt', $in: '$nin', $nin: '$in',
}

/** @param path the field that the enclosing members name; null: none was named yet */
function readSelector(value: unknown, path: FieldPath | null, reading: Reading): Selector {
  if (!isJsonObject(value)) return field(path, { operator: '$eq', value })
  const members = Object.entries(value)
  if (members.length === 0) return path === null ? nothing : field(path, { operator: '$eq', value })
  const conditions = members.map(([name, argument]) => readMember(name, argument, path, reading))
  return conditions.length === 1 ? conditions[0]! : { kind: 'and', operands: conditions }
}

function readMember(name: string, argument: unknown, path: FieldPath | null, reading: Reading): Selector {
  const { effort } = reading
  // Each member copies the path.
  effort.spend(1 + (path?.length ?? 0))
  if (name === '') throw missingField()
  if (!name.startsWith('$')) return readSelector(argument, [...path ?? [], ...parseFieldPath(name, effort)], reading)
  switch (name) {
    case '$and': return { kind: 'and', operands: operands(name, argument, path, reading) }
    case '$or': return { kind: 'or', operands: operands(name, argument, path, reading) }
    case '$nor': {
      const negated = operands(name, argument, path, reading).map(operand => negation(operand, reading))
      return { kind: 'and', operands: negated }
    }
    case '$not':
      if (!isJsonObject(argument)) throw badArgument(name, argument)
      return negation(readSelector(argument, path, reading), reading)
    default: return field(path, readTest(name, argument, effort))
  }
}

function operands(name: string, argument: unknown, path: FieldPath | null, reading: Reading): Selector[] {
  if (!Array.isArray(argument) || !argument.every(isJsonObject)) throw badArgument(name, argument)
  return argument.map(each => readSelector(each, path, reading))
}

function field(path: FieldPath | null, test: FieldTest): Selector {
  if (path === null) throw missingField()
  return { kind: 'field', path, test, negated: false }
}

function readTest(operator: string, argument: unknown, effort: Effort): FieldTest {
  switch (operator) {
    case '$eq': case '$ne': case '$lt': case '$lte': case '$gt': case '$gte':
      return { operator, value: argument }
    case '$in': case '$nin': case '$all':
      if (!Array.isArray(argument)) throw badArgument(operator, argument)
      return { operator, values: argument }
    case '$exists':
      if (typeof argument !== 'boolean') throw badArgument(operator, argument)
      return { operator, exists: argument }
    case '$type':
      if (typeof argument !== 'string') throw badArgument(operator, argument)
      return { operator, type: argument }
    case '$size':
      if (!isInteger(argument) || argument < 0) throw badArgument(operator, argument)
      return { operator, size: argument }
    case '$mod': {
      const [divisor, remainder] = Array.isArray(argument) && argument.length === 2 ? argument : []
      if (!isInteger(divisor) || !isInteger(remainder) || divisor === 0) throw badArgument(operator, argument)
      return { operator, divisor, remainder }
    }
    case '$regex': return { operator, pattern: new TextPattern(text(operator, argument), effort) }
    case '$beginsWith': return { operator, prefix: text(operator, argument) }
    case '$elemMatch': case '$allMatch': case '$keyMapMatch':
      if (!isJsonObject(argument)) throw badArgument(operator, argument)
      return { operator, selector: readSelector(argument, [], { effort, isOfElement: true }) }
    default:
      if (unsupported.has(operator)) throw new SelectorError('not_supported', `Unsupported operator: ${operator}`)
      throw new SelectorError('invalid_operator', `Invalid operator: ${operator}`)
  }
}

function negation(selector: Selector, { effort, isOfElement }: Reading): Selector {
  return isOfElement ? field([], { operator: '$not', selector }) : negate(selector, effort)
}

/**
 * Negates a selector by De Morgan's laws, so that only single tests are negated. A missing field also fails a negated
 * test, except for `$exists`.
 */
function negate(selector: Selector, effort: Effort): Selector {
  // The negation copies the selector.
  effort.spend(4)
  if (selector.kind !== 'field') {
    return {
      kind: selector.kind === 'or' ? 'and' : 'or', operands: selector.operands.map(operand => negate(operand, effort)),
    }
  }
  const { test } = selector
  if (test.operator === '$exists') return { ...selector, test: { ...test, exists: !test.exists } }
  const opposite = negatedOperators[test.operator]
  return opposite === undefined
    ? { ...selector, negated: !selector.negated }
    : { ...selector, test: { ...test, operator: opposite } as FieldTest }
}

function isInteger(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value)
}

function text(operator: string, argument: unknown): string {
  if (typeof argument !== 'string') throw new SelectorError('invalid_operator', `Invalid operator: ${operator}`)
  return argument
}

function badArgument(operator: string, argument: unknown): SelectorError {
  return new SelectorError('bad_arg', `Bad argument for operator ${operator}: ${shortJson(argument, shownMax)}`)
}

/** Most characters of a value that an error text shows. */
const shownMax = 1000

function missingField(): SelectorError {
  return new SelectorError('invalid_selector', 'One or more conditions is missing a field name.')
}
