import { varintBytesMax, writeVarint } from './varint.ts'

const initialBytes = 64
const doubleBytes = 8

/** Writes varints, doubles, texts and raw bytes one after the other, for `ByteReader`. */
export class ByteWriter {
  #bytes = Buffer.allocUnsafe(initialBytes)
  #length = 0

  byte(value: number): void {
    this.#reserve(1)
    this.#bytes[this.#length++] = value
  }

  varint(value: number): void {
    this.#reserve(varintBytesMax)
    this.#length = writeVarint(this.#bytes, this.#length, value)
  }

  double(value: number): void {
    this.#reserve(doubleBytes)
    this.#length = this.#bytes.writeDoubleLE(value, this.#length)
  }

  raw(bytes: Uint8Array): void {
    this.#reserve(bytes.length)
    this.#bytes.set(bytes, this.#length)
    this.#length += bytes.length
  }

  /** Writes the number of bytes as a varint, and the bytes. */
  sized(bytes: Uint8Array): void {
    this.varint(bytes.length)
    this.raw(bytes)
  }

  /** Writes the number of bytes of a text as a varint, and the text. */
  text(text: string, encoding: 'utf8' | 'latin1' = 'utf8'): void {
    const length = Buffer.byteLength(text, encoding)
    this.varint(length)
    this.#reserve(length)
    this.#length += this.#bytes.write(text, this.#length, encoding)
  }

  /** Returns the bytes written so far. Nothing may be written afterwards. */
  result(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  #reserve(added: number): void {
    const needed = this.#length + added
    if (needed <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(2 * needed)
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}
