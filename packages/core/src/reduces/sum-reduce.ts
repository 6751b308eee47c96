import { ByteWriter } from '../encoding/byte-writer.ts'
import { ByteReader } from '../encoding/varint.ts'
import type { BuiltInReduce, ReducedRow, Reduction } from './built-in-reduce.ts'
import { failureOf, ReduceFailure } from './reduce-failure.ts'
import { parseValue } from './reduced-value.ts'
import { SumTree } from './sum-tree.ts'

const sumTag = 0
const failureTag = 1

/**
 * `_sum` adds numbers; arrays of numbers element by element, where a missing element is 0 and a number counts as an
 * array of one element; and objects member by member. Each number of the result is the exact sum, rounded once
 * (`ExactSum`), so it is the same however the rows were divided. CouchDB rounds after each addition.
 */
export const sumReduce: BuiltInReduce = { name: '_sum', start: () => new Sum() }

class Sum implements Reduction {
  readonly #tree = new SumTree()
  #failure: ReduceFailure | undefined

  addRow({ value }: ReducedRow): void {
    this.#failure ??= failureOf(() => this.#tree.add(parseValue(value, '_sum')))
  }

  addState(state: Uint8Array): void {
    const reader = new ByteReader(state)
    const tag = reader.byte()
    if (tag === failureTag) this.#failure ??= ReduceFailure.decode(reader)
    else if (tag === sumTag) this.#failure ??= failureOf(() => this.#tree.addEncoded(reader))
    else throw new RangeError(`${tag} is not the tag of a state of _sum`)
  }

  encode(): Uint8Array {
    const writer = new ByteWriter()
    writer.byte(this.#failure === undefined ? sumTag : failureTag)
    ;(this.#failure ?? this.#tree).encode(writer)
    return writer.result()
  }

  result(): string {
    let json = ''
    const failure = this.#failure ?? failureOf(() => { json = this.#tree.toJson() })
    return failure?.toJson() ?? json
  }
}
