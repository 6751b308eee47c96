/**
 * Aggregates documents in groups. Shards aggregate what matches there and send their state, which the coordinator adds
 * to its own. The result neither depends on how documents are divided among shards nor on any order.
 */
import { RootTextOrder } from '../collation/root-text-order.ts'
import { ByteWriter } from '../encoding/byte-writer.ts'
import { ByteReader } from '../encoding/varint.ts'
import { parseText } from '../json/json-text.ts'
import { fieldAt, formatFieldPath } from '../selectors/field-path.ts'
import { compareJson } from '../selectors/json-order.ts'
import { type Accumulator, createAccumulator, identityOf } from './accumulator.ts'
import { AggregateBudget, type AggregateLimits, defaultAggregateLimits, tooMany } from './aggregate-budget.ts'
import type { AggregateQuery } from './aggregate-query.ts'

interface Group {
  /** For each field of `group_by`: a list of its value, empty when the documents of the group lack the field. */
  readonly values: readonly (readonly unknown[])[]
  /** In the order of the query's aggregates. */
  readonly accumulators: readonly Accumulator[]
}

export class Aggregation {
  readonly #query: AggregateQuery
  readonly #budget: AggregateBudget
  readonly #texts = new RootTextOrder()
  /** By the JSON of their values, of which the order of views may regard some as equal. */
  readonly #groups = new Map<string, Group>()

  constructor(query: AggregateQuery, limits: AggregateLimits = defaultAggregateLimits) {
    this.#query = query
    this.#budget = new AggregateBudget(limits)
  }

  /**
   * @param count the number of documents that agree with this one in all fields that are aggregated
   * @throws ApiError `bad_request` when there are too many groups or values
   */
  add(document: unknown, count = 1): void {
    const values = this.#query.groupBy.map(path => {
      const field = fieldAt(document, path)
      return field.kind === 'found' ? [field.value] : []
    })
    const key = values.map(value => value.length === 0 ? '[]' : `[${identityOf(value[0])}]`).join()
    const { accumulators } = this.#group(`[${key}]`, values)
    this.#query.aggregates.forEach(({ path }, at) => {
      if (path === null) return accumulators[at]!.add(true, count)
      const field = fieldAt(document, path)
      if (field.kind === 'found') accumulators[at]!.add(field.value, count)
    })
  }

  /** Returns the state for `addEncoded`, also when no documents were added. */
  encode(): Uint8Array {
    const writer = new ByteWriter()
    writer.varint(this.#groups.size)
    for (const [key, { accumulators }] of this.#groups) {
      writer.text(key)
      for (const accumulator of accumulators) accumulator.encode(writer)
    }
    return writer.result()
  }

  /**
   * Adds the state of another aggregation for the same query.
   *
   * @throws ApiError `bad_request` when there are too many groups or values; RangeError or SyntaxError for other bytes
   */
  addEncoded(state: Uint8Array): void {
    const reader = new ByteReader(state)
    for (let left = reader.varint(); left > 0; left--) {
      const key = reader.text(reader.varint(), 'utf8')
      const { accumulators } = this.#group(key, parseText(key) as unknown[][])
      for (const accumulator of accumulators) accumulator.addEncoded(reader)
    }
  }

  /**
   * Returns a row for each group as JSON text, in the order of views of the groups' values; a group without a field
   * comes before those with it. `key` has the group's fields, `value` has the aggregates:
   *
   *     {"key":{"genre":"drama"},"value":{"films":2,"votes":120}}
   *
   * Without `group_by` there is one row, also when no documents were added.
   */
  rows(): readonly string[] {
    const { groupBy, aggregates } = this.#query
    if (groupBy.length === 0) this.#group('[]', [])
    const names = groupBy.map(path => JSON.stringify(formatFieldPath(path)))
    const sorted = [...this.#groups].sort(([key, { values }], [otherKey, { values: other }]) =>
      compareJson(values, other, this.#texts.compare) || (key < otherKey ? -1 : 1))
    return this.#united(sorted.map(([, group]) => group))
      .map(({ values, accumulators }) => {
        const keyMembers = values.flatMap((value, at) =>
          value.length === 0 ? [] : [`${names[at]}:${JSON.stringify(value[0])}`])
        const results = aggregates.map(({ name }, at) => `${JSON.stringify(name)}:${accumulators[at]!.toJson()}`)
        return `{"key":{${keyMembers.join()}},"value":{${results.join()}}}`
      })
  }

  /** Unites successive groups whose values the order of views regards as equal. The first one's values are shown. */
  #united(sorted: readonly Group[]): readonly Group[] {
    const united: Group[] = []
    for (const group of sorted) {
      const last = united.at(-1)
      if (last === undefined || compareJson(last.values, group.values, this.#texts.compare) !== 0) {
        united.push(group)
        continue
      }
      const writer = new ByteWriter()
      for (const accumulator of group.accumulators) accumulator.encode(writer)
      const reader = new ByteReader(writer.result())
      for (const accumulator of last.accumulators) accumulator.addEncoded(reader)
    }
    return united
  }

  #group(key: string, values: Group['values']): Group {
    const present = this.#groups.get(key)
    if (present !== undefined) return present
    const { groupsMax } = this.#budget.limits
    if (this.#groups.size >= groupsMax) throw tooMany(`more than ${groupsMax} groups`)
    this.#budget.keep(key.length)
    const accumulators = this.#query.aggregates.map(aggregate =>
      createAccumulator(aggregate.function, this.#texts, this.#budget))
    const group = { values, accumulators }
    this.#groups.set(key, group)
    return group
  }
}
