/** Compiles the tests that compare a value by the order of JSON values. `_id` is compared by bytes. */
import { ComparedText, isPlainText, RootTextOrder } from '../collation/root-text-order.ts'
import type { Effort } from './effort.ts'
import { compareIds, compareJson, compareStringBytes, jsonRank } from './json-order.ts'
import type { ComparisonOperator } from './selector.ts'

export type ValueTest = (value: unknown) => boolean

/** Longest text whose comparison is not charged. */
const freeTextLength = 64

export class ComparisonCompiler {
  readonly #order: RootTextOrder
  readonly #effort: Effort

  constructor(effort: Effort) {
    this.#effort = effort
    this.#order = new RootTextOrder(characters => effort.spendKey(characters))
  }

  /** @param isId whether the value is the id of a document, which is compared by bytes */
  compare(operator: ComparisonOperator, expected: unknown, isId: boolean): ValueTest {
    switch (operator) {
      case '$eq': return this.equals(expected, isId)
      case '$ne': return this.#differs(expected, isId)
      case '$gt': return this.#isGreater(expected, isId)
      case '$lte': return negated(this.#isGreater(expected, isId))
      case '$lt': return this.#isLess(expected, isId)
      case '$gte': return negated(this.#isLess(expected, isId))
    }
  }

  equals(expected: unknown, isId: boolean): ValueTest {
    if (typeof expected === 'object' && expected !== null) {
      const order = this.#containerOrder(expected, isId)
      return value => order(value) === 0
    }
    if (typeof expected !== 'string' || isId) return value => value === expected
    const order = this.#textOrder(expected, isId)
    return value => value === expected || (typeof value === 'string' && order(value) === 0)
  }

  #differs(expected: unknown, isId: boolean): ValueTest {
    if (typeof expected !== 'string' || isId) return negated(this.equals(expected, isId))
    const order = this.#textOrder(expected, isId)
    return value => value !== expected && (typeof value !== 'string' || order(value) !== 0)
  }

  /** A test whether a value is one of these. Lists may be long, so each part is prepared when it is needed. */
  isOneOf(expected: readonly unknown[], isId: boolean): ValueTest {
    const isIdentical = later(() => hasMember(expected.filter(each => !isContainer(each))))
    const isContained = later(() => this.#equalsAnyOf(expected.filter(isContainer), isId))
    const isText = later(() => this.#isOneOfTexts(expected.filter(each => typeof each === 'string')))
    return value => {
      if (isContainer(value)) return isContained(value)
      return isIdentical(value) || (typeof value === 'string' && !isId && isText(value))
    }
  }

  /** A test whether a text is equal to one of these in the order of texts, but not identical to it. */
  #isOneOfTexts(expected: readonly string[]): ValueTest {
    const arePlain = expected.every(isPlainText)
    const isText = later(() => this.#equalsAnyOf(expected, false))
    return value => !(arePlain && isPlainText(value as string)) && isText(value)
  }

  #equalsAnyOf(expected: readonly unknown[], isId: boolean): ValueTest {
    if (expected.length === 0) return () => false
    this.#effort.spend(expected.length)
    const tests = expected.map(each => this.equals(each, isId))
    return value => {
      this.#effort.spend(tests.length)
      return tests.some(test => test(value))
    }
  }

  #isGreater(expected: unknown, isId: boolean): ValueTest {
    const rank = jsonRank(expected)
    if (typeof expected === 'number') {
      return value => typeof value === 'number' ? value > expected : jsonRank(value) > rank
    }
    if (typeof expected === 'string') {
      const order = this.#textOrder(expected, isId)
      return value => typeof value === 'string' ? order(value) < 0 : jsonRank(value) > rank
    }
    if (typeof expected !== 'object' || expected === null) return value => jsonRank(value) > rank
    const order = this.#containerOrder(expected, isId)
    return value => order(value) < 0
  }

  #isLess(expected: unknown, isId: boolean): ValueTest {
    const rank = jsonRank(expected)
    if (typeof expected === 'number') {
      return value => typeof value === 'number' ? value < expected : jsonRank(value) < rank
    }
    if (typeof expected === 'string') {
      const order = this.#textOrder(expected, isId)
      return value => typeof value === 'string' ? order(value) > 0 : jsonRank(value) < rank
    }
    if (typeof expected !== 'object' || expected === null) return value => jsonRank(value) < rank
    const order = this.#containerOrder(expected, isId)
    return value => order(value) > 0
  }

  /** Returns the comparison of the expected text with another one. */
  #textOrder(expected: string, isId: boolean): (value: string) => number {
    const compared = new ComparedText(expected, this.#order)
    const order: (value: string) => number = isId ? value => compareStringBytes(expected, value) : compared.compare
    if (expected.length <= freeTextLength) return order
    return value => {
      this.#effort.spendText(Math.min(value.length, expected.length))
      return order(value)
    }
  }

  /** Returns the comparison of the expected array or object with a value. */
  #containerOrder(expected: object, isId: boolean): (value: unknown) => number {
    if (isId) return value => compareIds(expected, value, this.#effort)
    return value => compareJson(expected, value, this.#order.compare, this.#effort)
  }
}

function isContainer(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}

/** Fewer values than this are compared one by one, which is faster than a set. */
const setValuesMin = 8

/** A test whether a value is identical to one of these. */
function hasMember(values: readonly unknown[]): ValueTest {
  if (values.length >= setValuesMin) {
    const set = new Set(values)
    return value => set.has(value)
  }
  return value => values.includes(value)
}

/** Returns a test that is made at its first use. */
function later(make: () => ValueTest): ValueTest {
  let test: ValueTest | undefined
  return value => (test ??= make())(value)
}

function negated(test: ValueTest): ValueTest {
  return value => !test(value)
}
