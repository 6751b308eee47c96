import { ApiError } from '../errors.ts'

/** Longest sort key, in bytes; also the longest string in a key, in UTF-16 units. */
export const sortKeyBytesMax = 1 << 20
/** Memory that is kept for the next key, in bytes. */
const keptBytesMax = 1 << 16
const initialBytes = 256

/** A growing sequence of bytes. Its memory is used again for the next sequence. */
export class KeyBytes {
  #bytes = Buffer.allocUnsafe(initialBytes)
  #length = 0

  get length(): number {
    return this.#length
  }

  clear(): void {
    this.#length = 0
    if (this.#bytes.length > keptBytesMax) this.#bytes = Buffer.allocUnsafe(initialBytes)
  }

  /** @throws ApiError `bad_request` beyond `sortKeyBytesMax` */
  push(byte: number): void {
    if (this.#length === this.#bytes.length) this.#grow(1)
    this.#bytes[this.#length++] = byte
  }

  /** Appends one or two bytes: the low byte is left out when it is zero. */
  pushWeight16(weight: number): void {
    this.push(weight >>> 8)
    if ((weight & 0xff) !== 0) this.push(weight & 0xff)
  }

  /** @throws ApiError `bad_request` beyond `sortKeyBytesMax` */
  append(source: KeyBytes): void {
    const end = this.#length + source.#length
    if (end > this.#bytes.length) this.#grow(source.#length)
    // Most sequences have a few bytes, for which a loop is faster than a call of copy.
    for (let i = 0; i < source.#length; i++) this.#bytes[this.#length + i] = source.#bytes[i]!
    this.#length = end
  }

  /** Returns the bytes as text with a character from U+0000 to U+00FF for each byte. */
  text(): string {
    return this.#bytes.toString('latin1', 0, this.#length)
  }

  #grow(added: number): void {
    const needed = this.#length + added
    if (needed > sortKeyBytesMax) throw keyTooLong()
    const larger = Buffer.allocUnsafe(Math.min(sortKeyBytesMax, 2 * needed))
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}

export function keyTooLong(): ApiError {
  return new ApiError('bad_request', `The sort key of a value is longer than ${sortKeyBytesMax} bytes`)
}
