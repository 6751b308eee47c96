import { varintBytesMax, ByteReader, writeVarint } from '../encoding/varint.ts'
import type { BuiltInReduce, Reduction } from './built-in-reduce.ts'

/** `_count` counts rows, whatever their values are. */
export const countReduce: BuiltInReduce = { name: '_count', start: () => new Count() }

class Count implements Reduction {
  #count = 0

  addRow(): void {
    this.#count++
  }

  addState(state: Uint8Array): void {
    this.#count += new ByteReader(state).varint()
  }

  encode(): Uint8Array {
    const bytes = Buffer.allocUnsafe(varintBytesMax)
    return bytes.subarray(0, writeVarint(bytes, 0, this.#count))
  }

  result(): string {
    return String(this.#count)
  }
}
