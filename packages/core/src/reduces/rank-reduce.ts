import { SortKeyEncoder } from '../collation/sort-key.ts'
import { ByteWriter } from '../encoding/byte-writer.ts'
import { ByteReader } from '../encoding/varint.ts'
import { ApiError } from '../errors.ts'
import { textOf } from '../json/json-bytes.ts'
import type { BuiltInReduce, ReducedRow, Reduction } from './built-in-reduce.ts'
import { keptValueBytesMax, keptValueFailure } from './kept-value.ts'
import { failureOf, quotedText, ReduceFailure } from './reduce-failure.ts'

/** Greatest N of `_top_N` and `_bottom_N`. */
export const rankMax = 100

interface RankedValue { readonly key: string; readonly json: string }

const valuesTag = 0
const failureTag = 1

/** `_top_N` returns the N greatest values, the greatest one first (`Ranking`). */
export function topReduce(count: number): BuiltInReduce {
  return rankReduce(`_top_${count}`, count, -1)
}

/** `_bottom_N` returns the N least values, the least one first (`Ranking`). */
export function bottomReduce(count: number): BuiltInReduce {
  return rankReduce(`_bottom_${count}`, count, 1)
}

function rankReduce(name: string, count: number, direction: 1 | -1): BuiltInReduce {
  const keys = new SortKeyEncoder()
  return { name, start: () => new Ranking({ name, count, direction, keys }) }
}

interface RankingOptions {
  readonly name: string
  readonly count: number
  /** 1 ranks the least value first, -1 the greatest. */
  readonly direction: 1 | -1
  readonly keys: SortKeyEncoder
}

/**
 * The first values in the root collation, whatever the collation of the index is. Values that the collation regards as
 * equal are listed once, as in CouchDB; of their texts, the first one in the order of UTF-16 units is kept.
 */
class Ranking implements Reduction {
  readonly #options: RankingOptions
  /** In the order of the result, with different keys. */
  readonly #values: RankedValue[] = []
  #failure: ReduceFailure | undefined

  constructor(options: RankingOptions) {
    this.#options = options
  }

  addRow({ value }: ReducedRow): void {
    const { name, count } = this.#options
    this.#failure ??= value.length > keptValueBytesMax(count)
      ? keptValueFailure(name, count, value)
      : failureOf(() => this.#add(this.#ranked(textOf(value))))
  }

  addState(state: Uint8Array): void {
    const reader = new ByteReader(state)
    const tag = reader.byte()
    if (tag === failureTag) {
      this.#failure ??= ReduceFailure.decode(reader)
      return
    }
    if (tag !== valuesTag) throw new RangeError(`${tag} is not the tag of a state of ${this.#options.name}`)
    this.#failure ??= failureOf(() => {
      // The values are in their order: if one has no place among the first ones, none of the others has.
      while (!reader.done && this.#add(this.#ranked(reader.text(reader.varint(), 'utf8'))));
    })
  }

  encode(): Uint8Array {
    const writer = new ByteWriter()
    writer.byte(this.#failure === undefined ? valuesTag : failureTag)
    if (this.#failure !== undefined) this.#failure.encode(writer)
    else for (const { json } of this.#values) writer.text(json)
    return writer.result()
  }

  result(): string {
    return this.#failure?.toJson() ?? `[${this.#values.map(({ json }) => json).join(',')}]`
  }

  /** Returns false when `count` other values precede this one. */
  #add(value: RankedValue): boolean {
    const { count, direction } = this.#options
    const values = this.#values
    let at = values.length
    while (at > 0 && compare(value.key, values[at - 1]!.key) * direction < 0) at--
    const before = values[at - 1]
    if (before?.key === value.key) {
      if (value.json < before.json) values[at - 1] = value
      return true
    }
    if (at === count) return false
    values.splice(at, 0, value)
    if (values.length > count) values.pop()
    return true
  }

  #ranked(json: string): RankedValue {
    try {
      return { key: this.#options.keys.encode(JSON.parse(json)), json }
    } catch (error) {
      const isExpected = error instanceof ApiError || error instanceof SyntaxError || error instanceof TypeError
      if (!isExpected) throw error
      throw new ReduceFailure(`The ${this.#options.name} function cannot order a value: ${error.message}`,
        quotedText(JSON.stringify(json)))
    }
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
