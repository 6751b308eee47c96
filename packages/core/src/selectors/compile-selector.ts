/**
 * Compiles selectors to closures, which match several times as many documents in a second as `matchesSelector`.
 *
 * The number of conditions is limited by `parseSelector`. So only what a document multiplies is charged: conditions on
 * the elements of an array or the names of an object, and comparisons of large values.
 */
import { ComparisonCompiler, type ValueTest } from './compile-comparison.ts'
import { Effort } from './effort.ts'
import { fieldAt, type FieldPath } from './field-path.ts'
import { compareJson, compareStringBytes } from './json-order.ts'
import type { FieldTest, Selector } from './selector.ts'
import { testPlainly, type TestInTime } from './text-pattern.ts'

/**
 * Whether a document, with its `_id`, `_rev` and other special members, matches. Calls must not overlap.
 *
 * Throws SelectorError `bad_arg` when a `$regex` takes too long, or when the matching takes more than
 * `selectorStepsMax` steps.
 */
export type DocumentTest = (document: Readonly<Record<string, unknown>>) => boolean

/** @param testInTime tests the patterns of the selector; by default without a limit of time */
export function compileSelector(selector: Selector, testInTime: TestInTime = testPlainly): DocumentTest {
  const effort = new Effort('Matching a document')
  const matches = new SelectorCompiler(effort, testInTime).compile(selector)
  return document => {
    effort.begin()
    return matches(document)
  }
}

class SelectorCompiler {
  readonly #effort: Effort
  readonly #testInTime: TestInTime
  readonly #comparisons: ComparisonCompiler

  constructor(effort: Effort, testInTime: TestInTime) {
    this.#effort = effort
    this.#testInTime = testInTime
    this.#comparisons = new ComparisonCompiler(effort)
  }

  compile(selector: Selector): ValueTest {
    switch (selector.kind) {
      case 'everything': return () => true
      case 'and': return allOf(selector.operands.map(operand => this.compile(operand)))
      case 'or':
        return selector.operands.length === 0
          ? () => true
          : anyOf(selector.operands.map(operand => this.compile(operand)))
      case 'field': {
        const { path, test, negated } = selector
        if (test.operator === '$exists') return existence(path, test.exists)
        const matches = this.#compileTest(test, path.length === 1 && path[0] === '_id')
        return fieldTest(path, negated ? value => !matches(value) : matches)
      }
    }
  }

  #compileTest(test: FieldTest, isId: boolean): ValueTest {
    switch (test.operator) {
      case '$in': return this.#contains(test.values, isId)
      case '$nin': {
        const contains = this.#contains(test.values, isId)
        return value => !contains(value)
      }
      case '$all': return this.#hasAll(test.values)
      case '$type': return hasType(test.type)
      case '$size': {
        const { size } = test
        return value => Array.isArray(value) && value.length === size
      }
      // The sign of the divisor does not affect the remainder, because the division truncates.
      case '$mod': {
        const { divisor, remainder } = test
        return value => Number.isInteger(value) && (value as number) % divisor === remainder
      }
      case '$regex': {
        const { pattern } = test
        return value => typeof value === 'string' && pattern.test(value, this.#testInTime, this.#effort)
      }
      case '$beginsWith': {
        const { prefix } = test
        return value => {
          if (typeof value !== 'string') return false
          this.#effort.spendText(Math.min(value.length, prefix.length))
          return value.startsWith(prefix)
        }
      }
      case '$elemMatch': case '$allMatch': case '$keyMapMatch': return this.#compileElements(test)
      case '$not': {
        const matches = this.compile(test.selector)
        return value => !matches(value)
      }
      case '$exists': return () => test.exists
      default: return this.#comparisons.compare(test.operator, test.value, isId)
    }
  }

  /** A test whether a value equals one of `values`. Of an array, an element must. */
  #contains(values: readonly unknown[], isId: boolean): ValueTest {
    const isOneOf = this.#comparisons.isOneOf(values, isId)
    return value => {
      if (!Array.isArray(value)) return isOneOf(value)
      this.#effort.spend(value.length)
      return value.some(isOneOf)
    }
  }

  /** A test for an array that has each of `values`. A single array in `values` may also equal the tested array. */
  #hasAll(values: readonly unknown[]): ValueTest {
    const equal = (a: unknown, b: unknown): boolean => {
      this.#effort.spend(1)
      return compareJson(a, b, compareStringBytes, this.#effort) === 0
    }
    const [only] = values.length === 1 && Array.isArray(values[0]) ? values : []
    return value => {
      if (!Array.isArray(value) || values.length === 0) return false
      if (only !== undefined && equal(value, only)) return true
      return values.every(each => value.some(element => equal(element, each)))
    }
  }

  #compileElements(
    { operator, selector }: Extract<FieldTest, { operator: '$elemMatch' | '$allMatch' | '$keyMapMatch' }>,
  ): ValueTest {
    const matches = this.compile(selector)
    const steps = stepsOf(selector)
    const charged = (element: unknown): boolean => {
      this.#effort.spend(steps)
      return matches(element)
    }
    switch (operator) {
      case '$elemMatch': return value => Array.isArray(value) && value.some(charged)
      case '$allMatch': return value => Array.isArray(value) && value.length > 0 && value.every(charged)
      case '$keyMapMatch': return value => {
        if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
        const names = Object.keys(value)
        this.#effort.spendNames(names.length)
        return names.some(charged)
      }
    }
  }
}

/** Returns how many steps the conditions take that are tested once on one value. */
function stepsOf(selector: Selector): number {
  if (selector.kind === 'field') {
    const { path, test } = selector
    return 1 + path.length + (test.operator === '$not' ? stepsOf(test.selector) : 0)
  }
  return selector.operands.reduce((steps, operand) => steps + stepsOf(operand), 1)
}

function allOf(tests: readonly ValueTest[]): ValueTest {
  const [first, second, ...others] = tests
  if (first === undefined) return () => true
  if (second === undefined) return first
  if (others.length === 0) return value => first(value) && second(value)
  return value => {
    for (const test of tests) if (!test(value)) return false
    return true
  }
}

function anyOf(tests: readonly ValueTest[]): ValueTest {
  const [first, second, ...others] = tests
  if (second === undefined) return first!
  if (others.length === 0) return value => first!(value) || second(value)
  return value => {
    for (const test of tests) if (test(value)) return true
    return false
  }
}

function existence(path: FieldPath, exists: boolean): ValueTest {
  const kind = exists ? 'found' : 'missing'
  return document => fieldAt(document, path).kind === kind
}

/** Names that each object has, although JSON did not give them to it. */
const inherited: ReadonlySet<string> = new Set(Object.getOwnPropertyNames(Object.prototype))

/** Tests the value at a path. A missing value fails. */
function fieldTest(path: FieldPath, test: ValueTest): ValueTest {
  const [name, ...rest] = path
  if (name === undefined) return test
  const inner = fieldTest(rest, test)
  const atPlace = (document: unknown): boolean => {
    const field = fieldAt(document, [name])
    return field.kind === 'found' && inner(field.value)
  }
  if (inherited.has(name)) return atPlace
  return document => {
    if (typeof document !== 'object' || document === null) return false
    if (Array.isArray(document)) return atPlace(document)
    // JSON has no undefined.
    const value = (document as Readonly<Record<string, unknown>>)[name]
    return value !== undefined && inner(value)
  }
}

function hasType(type: string): ValueTest {
  switch (type) {
    case 'null': return value => value === null
    case 'array': return value => Array.isArray(value)
    case 'object': return value => typeof value === 'object' && value !== null && !Array.isArray(value)
    case 'boolean': case 'number': case 'string': return value => typeof value === type
    default: return () => false
  }
}
