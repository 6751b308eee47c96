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

  /** A test whether a value is one of these. */
  isOneOf(expected: readonly unknown[], isId: boolean): ValueTest {
    const [containers, scalars] = [expected.filter(isContainer), expected.filter(each => !isContainer(each))]
    const isIdentical = hasMember(scalars)
    const isContained = this.#equalsAnyOf(containers, isId)
    const texts = isId ? [] : scalars.filter(each => typeof each === 'string')
    if (texts.length === 0) return value => isContainer(value) ? isContained(value) : isIdentical(value)
    const isText = this.#equalsAnyOf(texts, isId)
    const arePlain = texts.every(isPlainText)
    return value => {
      if (typeof value !== 'string') return isContainer(value) ? isContained(value) : isIdentical(value)
      return isIdentical(value) || (!(arePlain && isPlainText(value)) && isText(value))
    }
  }

  #equalsAnyOf(expected: readonly unknown[], isId: boolean): ValueTest {
    if (expected.length === 0) return () => false
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

function negated(test: ValueTest): ValueTest {
  return value => !test(value)
}
