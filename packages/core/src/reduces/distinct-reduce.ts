import { ByteWriter } from '../encoding/byte-writer.ts'
import { ByteReader } from '../encoding/varint.ts'
import type { BuiltInReduce, ReducedRow, Reduction } from './built-in-reduce.ts'
import { HyperLogLog } from './hyper-log-log.ts'
import { keyHash } from './key-hash.ts'

/**
 * `_approx_count_distinct` estimates the number of different keys with a standard error of 2.3 %; up to 256 different
 * keys are counted exactly. Keys that the collation of the index regards as equal are one key. CouchDB counts them
 * separately when their bytes differ.
 */
export const distinctReduce: BuiltInReduce = { name: '_approx_count_distinct', start: () => new Distinct() }

class Distinct implements Reduction {
  readonly #sketch = new HyperLogLog()
  /** The key of the row before, so that rows of one key are hashed once. */
  #key: string | undefined

  addRow({ key }: ReducedRow): void {
    if (key === this.#key) return
    this.#key = key
    this.#sketch.add(keyHash(key))
  }

  addState(state: Uint8Array): void {
    this.#sketch.addEncoded(new ByteReader(state))
  }

  encode(): Uint8Array {
    const writer = new ByteWriter()
    this.#sketch.encode(writer)
    return writer.result()
  }

  result(): string {
    return String(this.#sketch.estimate())
  }
}
