const initialBytes = 256
/** Up to here integers are shifted as 32 bits. */
const smallMax = 2 ** 31 - 1
/** Groups of seven bits of larger ones that are written first, and the factor of the rest. */
const lowGroups = 4
const lowFactor = 2 ** 28

/** Builds a record: variable-length integers, text and bytes. Reusable; `finish` copies. */
export class ByteWriter {
  #bytes = Buffer.allocUnsafe(initialBytes)
  #length: number
  readonly #reserved: number

  /** @param reserved bytes left free at the start of each record */
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
      // Arithmetic of doubles takes several times as long: once is enough.
      let low = value % lowFactor
      for (let group = 0; group < lowGroups; group++, low >>>= 7) this.#bytes[this.#length++] = (low & 0x7f) | 0x80
      rest = Math.floor(value / lowFactor)
    }
    for (; rest > 0x7f; rest >>>= 7) this.#bytes[this.#length++] = (rest & 0x7f) | 0x80
    this.#bytes[this.#length++] = rest
  }

  /** UTF-8 with its length in front. */
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

  /** Bytes of the record so far. */
  get length(): number {
    return this.#length
  }

  /** What another writer holds from an offset on. */
  copy(from: ByteWriter, offset: number): void {
    this.#reserve(from.#length - offset)
    this.#length += from.#bytes.copy(this.#bytes, this.#length, offset, from.#length)
  }

  /** A copy of the record; the writer starts anew. */
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
