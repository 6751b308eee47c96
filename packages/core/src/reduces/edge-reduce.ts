import { ByteWriter } from '../encoding/byte-writer.ts'
import { ByteReader } from '../encoding/varint.ts'
import { compareRows, type RowPlace } from '../contracts/index-replica.ts'
import { textOf } from '../json/json-bytes.ts'
import type { BuiltInReduce, ReducedRow, Reduction } from './built-in-reduce.ts'
import { keptValueBytesMax, keptValueFailure } from './kept-value.ts'

/** `_first` returns the value of the row that is first in the order of the index. */
export const firstReduce: BuiltInReduce = { name: '_first', start: () => new Edge('_first', 1) }
/** `_last` returns the value of the row that is last in the order of the index. */
export const lastReduce: BuiltInReduce = { name: '_last', start: () => new Edge('_last', -1) }

/**
 * The row at one end of the index. The state contains the row's place, so that the states of several shards, whose rows
 * alternate in the order of the index, can be combined.
 */
class Edge implements Reduction {
  readonly #name: string
  readonly #direction: 1 | -1
  #place: RowPlace | undefined
  /** A value that is too long, of which only the beginning is kept, has more than `keptValueBytesMax` bytes. */
  #value: Uint8Array = Buffer.alloc(0)

  /** @param direction 1 keeps the least row, -1 the greatest */
  constructor(name: string, direction: 1 | -1) {
    this.#name = name
    this.#direction = direction
  }

  addRow(row: ReducedRow): void {
    if (this.#place !== undefined && compareRows(row, this.#place) * this.#direction >= 0) return
    const { key, id, number } = row
    this.#place = { key, id, number }
    this.#value = row.value.subarray(0, keptValueBytesMax(1) + 1)
  }

  addState(state: Uint8Array): void {
    const reader = new ByteReader(state)
    const key = reader.text(reader.varint(), 'latin1')
    const id = reader.text(reader.varint(), 'utf8')
    const number = reader.varint()
    this.addRow({ key, id, number, value: reader.raw(reader.varint()) })
  }

  encode(): Uint8Array {
    const { key, id, number } = this.#place!
    const writer = new ByteWriter()
    writer.text(key, 'latin1')
    writer.text(id)
    writer.varint(number)
    writer.sized(this.#value)
    return writer.result()
  }

  result(): string {
    const isTooLong = this.#value.length > keptValueBytesMax(1)
    return isTooLong ? keptValueFailure(this.#name, 1, this.#value).toJson() : textOf(this.#value)
  }
}
