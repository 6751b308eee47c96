/** The state of one aggregate of one group. It does not depend on the order in which values and states were added. */
import type { RootTextOrder } from '../collation/root-text-order.ts'
import type { ByteWriter } from '../encoding/byte-writer.ts'
import type { ByteReader } from '../encoding/varint.ts'
import { parseText } from '../json/json-text.ts'
import { ExactSum } from '../reduces/exact-sum.ts'
import { compareJson } from '../selectors/json-order.ts'
import { type AggregateBudget, tooMany } from './aggregate-budget.ts'
import type { AggregateFunction } from './aggregate-query.ts'

export interface Accumulator {
  /**
   * Adds a value. It is not called for a document without the field.
   *
   * @param count the number of documents that have the value, at least 1
   */
  add(value: unknown, count: number): void
  encode(writer: ByteWriter): void
  /** Adds a state that `encode` has written. @throws RangeError for other bytes */
  addEncoded(reader: ByteReader): void
  /** Returns the result as JSON text. */
  toJson(): string
}

/** A value that is kept with its JSON. */
interface KeptValue { readonly value: unknown; readonly json: string }

/** Orders by JSON what the collation regards as equal, so that the result does not depend on what was added first. */
function compareJsonTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** Returns JSON text that identifies a value. */
export function identityOf(value: unknown): string {
  return typeof value === 'number' ? String(value) : JSON.stringify(value)
}

export function createAccumulator(
  name: AggregateFunction, order: RootTextOrder, budget: AggregateBudget,
): Accumulator {
  switch (name) {
    case '$count': return new Count()
    case '$sum': return new NumberSum(sum => sum ?? 'null')
    case '$avg': return new NumberSum((sum, count) =>
      sum === undefined || count === 0 ? 'null' : JSON.stringify(Number(sum) / count))
    case '$min': return new Extreme(1, order, budget)
    case '$max': return new Extreme(-1, order, budget)
    case '$distinct': return new DistinctValues(order, budget)
  }
}

class Count implements Accumulator {
  #count = 0

  add(_value: unknown, count: number): void {
    this.#count += count
  }

  encode(writer: ByteWriter): void {
    writer.varint(this.#count)
  }

  addEncoded(reader: ByteReader): void {
    this.#count += reader.varint()
  }

  toJson(): string {
    return String(this.#count)
  }
}

class NumberSum implements Accumulator {
  readonly #sum = new ExactSum()
  #count = 0
  readonly #result: (sum: string | undefined, count: number) => string

  /** @param result makes the result of the sum, undefined when it is beyond the range of doubles, and the count */
  constructor(result: (sum: string | undefined, count: number) => string) {
    this.#result = result
  }

  add(value: unknown, count: number): void {
    if (typeof value !== 'number' || !Number.isFinite(value)) return
    this.#sum.addTimes(value, count)
    this.#count += count
  }

  encode(writer: ByteWriter): void {
    writer.varint(this.#count)
    this.#sum.encode(writer)
  }

  addEncoded(reader: ByteReader): void {
    this.#count += reader.varint()
    this.#sum.addEncoded(reader)
  }

  toJson(): string {
    return this.#result(this.#sum.toJson(), this.#count)
  }
}

/** The least or greatest value. */
class Extreme implements Accumulator {
  #first: KeptValue | undefined
  readonly #sign: 1 | -1
  readonly #order: RootTextOrder
  readonly #budget: AggregateBudget

  /** @param sign 1: the least value; -1: the greatest one */
  constructor(sign: 1 | -1, order: RootTextOrder, budget: AggregateBudget) {
    this.#sign = sign
    this.#order = order
    this.#budget = budget
  }

  add(value: unknown): void {
    const first = this.#first
    const difference = first === undefined ? 1 : this.#sign * compareJson(first.value, value, this.#order.compare)
    if (difference < 0 || value === first?.value) return
    const json = identityOf(value)
    if (difference === 0 && this.#sign * compareJsonTexts(first!.json, json) <= 0) return
    this.#budget.keep(json.length - (first?.json.length ?? 0))
    this.#first = { value, json }
  }

  encode(writer: ByteWriter): void {
    writer.text(this.#first?.json ?? '')
  }

  addEncoded(reader: ByteReader): void {
    const json = reader.text(reader.varint(), 'utf8')
    if (json !== '') this.add(parseText(json))
  }

  toJson(): string {
    return this.#first?.json ?? 'null'
  }
}

class DistinctValues implements Accumulator {
  /** The values by their JSON. */
  readonly #values = new Map<string, unknown>()
  readonly #order: RootTextOrder
  readonly #budget: AggregateBudget

  constructor(order: RootTextOrder, budget: AggregateBudget) {
    this.#order = order
    this.#budget = budget
  }

  add(value: unknown): void {
    const json = identityOf(value)
    if (this.#values.has(json)) return
    const { distinctMax } = this.#budget.limits
    if (this.#values.size >= distinctMax) throw tooMany(`more than ${distinctMax} different values of $distinct`)
    this.#budget.keep(json.length)
    this.#values.set(json, value)
  }

  encode(writer: ByteWriter): void {
    writer.varint(this.#values.size)
    for (const json of this.#values.keys()) writer.text(json)
  }

  addEncoded(reader: ByteReader): void {
    for (let left = reader.varint(); left > 0; left--) this.add(parseText(reader.text(reader.varint(), 'utf8')))
  }

  toJson(): string {
    const sorted = [...this.#values].sort(([json, value], [otherJson, other]) =>
      compareJson(value, other, this.#order.compare) || compareJsonTexts(json, otherJson))
    const isFirst = ([, value]: [string, unknown], at: number): boolean =>
      at === 0 || compareJson(sorted[at - 1]![1], value, this.#order.compare) !== 0
    return `[${sorted.filter(isFirst).map(([json]) => json).join()}]`
  }
}
