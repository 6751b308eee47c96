import { asBuffer } from './as-buffer.ts'

/** Unsigned LEB128 integers up to 2^53 - 1, as in protobuf (https://protobuf.dev/programming-guides/encoding/). */

/** Longest encoding of a safe integer, in bytes. */
export const varintBytesMax = 8

/** Writes `value` at `offset` and returns the offset after it. The target must have room for `varintBytesMax`. */
export function writeVarint(target: Uint8Array, offset: number, value: number): number {
  while (value > 0x7fffffff) {
    target[offset++] = (value % 128) | 0x80
    value = Math.floor(value / 128)
  }
  while (value > 0x7f) {
    target[offset++] = (value & 0x7f) | 0x80
    value >>>= 7
  }
  target[offset++] = value
  return offset
}

export function varintLength(value: number): number {
  let length = 1
  while (value > 0x7f) {
    value = Math.floor(value / 128)
    length++
  }
  return length
}

/** Reads varints, doubles, texts and raw bytes one after the other; throws RangeError at the end of the input. */
export class ByteReader {
  readonly bytes: Buffer
  offset: number

  constructor(bytes: Uint8Array, offset = 0) {
    this.bytes = asBuffer(bytes)
    this.offset = offset
  }

  get done(): boolean {
    return this.offset >= this.bytes.length
  }

  byte(): number {
    const value = this.bytes[this.offset]
    if (value === undefined) throw new RangeError('unexpected end of input')
    this.offset++
    return value
  }

  varint(): number {
    let value = 0
    let scale = 1
    for (let i = 0; i < varintBytesMax; i++) {
      const byte = this.byte()
      value += (byte & 0x7f) * scale
      if (byte < 0x80) {
        if (!Number.isSafeInteger(value)) break
        return value
      }
      scale *= 128
    }
    throw new RangeError('integer out of range')
  }

  /** Reads `length` bytes as text. */
  text(length: number, encoding: 'utf8' | 'hex' | 'latin1'): string {
    const start = this.offset
    this.skip(length)
    return this.bytes.toString(encoding, start, this.offset)
  }

  /** Reads `length` bytes. The result shares their memory. */
  raw(length: number): Buffer {
    const start = this.offset
    this.skip(length)
    return this.bytes.subarray(start, this.offset)
  }

  double(): number {
    const start = this.offset
    this.skip(8)
    return this.bytes.readDoubleLE(start)
  }

  skip(length: number): void {
    const end = this.offset + length
    if (end > this.bytes.length) throw new RangeError('unexpected end of input')
    this.offset = end
  }
}
