import { asBuffer } from '@sectional/core'
import { DamagedRecordError } from './damaged-record.ts'

/** Reads records of `ByteWriter`. It throws DamagedRecordError at the end of the record. */
export class ByteReader {
  readonly #bytes: Buffer
  #offset: number

  constructor(bytes: Uint8Array, offset = 0) {
    this.#bytes = asBuffer(bytes)
    this.#offset = offset
  }

  byte(): number {
    const value = this.#bytes[this.#offset++]
    if (value === undefined) throw new DamagedRecordError('a record ends too early')
    return value
  }

  integer(): number {
    let value = 0
    for (let shift = 0; shift < 28; shift += 7) {
      const next = this.byte()
      value |= (next & 0x7f) << shift
      if (next < 0x80) return value
    }
    let high = 0
    for (let shift = 0; shift < 28; shift += 7) {
      const next = this.byte()
      high |= (next & 0x7f) << shift
      if (next < 0x80) return value + high * 2 ** 28
    }
    throw new DamagedRecordError('a number in a record is too long')
  }

  text(): string {
    const start = this.#advance(this.integer())
    return this.#bytes.toString('utf8', start, this.#offset)
  }

  hex(byteLength: number): string {
    const start = this.#advance(byteLength)
    return this.#bytes.toString('hex', start, this.#offset)
  }

  /** Returns that many bytes; they share the memory of the record. */
  bytes(length: number): Uint8Array {
    const start = this.#advance(length)
    return this.#bytes.subarray(start, this.#offset)
  }

  /** The position of the next value in the record. */
  get offset(): number {
    return this.#offset
  }

  /** Returns the remaining bytes. */
  rest(): Uint8Array {
    return this.#bytes.subarray(this.#offset)
  }

  #advance(byteLength: number): number {
    const start = this.#offset
    if (start + byteLength > this.#bytes.length) throw new DamagedRecordError('a record ends too early')
    this.#offset = start + byteLength
    return start
  }
}
