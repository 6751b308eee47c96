const initialBytes = 256
/** Integers up to this one are encoded by shifts of 32 bits. */
const smallMax = 2 ** 31 - 1
/**
 * A larger integer is split in two. The remainder of its division by `lowFactor` is written first, as `lowGroups`
 * groups of seven bits, and then the quotient.
 */
const lowGroups = 4
const lowFactor = 2 ** 28

/** Builds records of variable-length integers, text and bytes. A writer can be used again after `finish`. */
export class ByteWriter {
  #bytes = Buffer.allocUnsafe(initialBytes)
  #length: number
  readonly #reserved: number

  /** @param reserved number of bytes that are left free at the start of each record */
  constructor(reserved = 0) {
    this.#reserved = reserved
    this.#length = reserved
  }

  byte(value: number): void {
    this.#reserve(1)
    this.#bytes[this.#length++] = value
  }

  /** LEB128 of an integer from 0 to 2^53-1. */
  integer(value: number): void {
    this.#reserve(8)
    let rest = value
    if (value > smallMax) {
      // Divide only once, because arithmetic with doubles takes several times as long as with integers.
      let low = value % lowFactor
      for (let group = 0; group < lowGroups; group++, low >>>= 7) this.#bytes[this.#length++] = (low & 0x7f) | 0x80
      rest = Math.floor(value / lowFactor)
    }
    for (; rest > 0x7f; rest >>>= 7) this.#bytes[this.#length++] = (rest & 0x7f) | 0x80
    this.#bytes[this.#length++] = rest
  }

  /** Appends the length of the text's UTF-8, then the UTF-8. */
  text(value: string): void {
    const byteLength = Buffer.byteLength(value)
    this.integer(byteLength)
    this.#reserve(byteLength)
    this.#length += this.#bytes.write(value, this.#length)
  }

  hex(value: string): void {
    this.#reserve(value.length / 2)
    this.#length += this.#bytes.write(value, this.#length, 'hex')
  }

  bytes(value: Uint8Array): void {
    this.#reserve(value.length)
    this.#bytes.set(value, this.#length)
    this.#length += value.length
  }

  /** Number of bytes of the record so far, with the reserved ones. */
  get length(): number {
    return this.#length
  }

  /** Appends the bytes of another writer from an offset on. */
  copy(from: ByteWriter, offset: number): void {
    this.#reserve(from.#length - offset)
    this.#length += from.#bytes.copy(this.#bytes, this.#length, offset, from.#length)
  }

  /** Returns a copy of the record, and resets the writer. */
  finish(): Buffer {
    const record = Buffer.allocUnsafe(this.#length)
    this.#bytes.copy(record, 0, 0, this.#length)
    this.#length = this.#reserved
    return record
  }

  #reserve(count: number): void {
    const needed = this.#length + count
    if (needed <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}
