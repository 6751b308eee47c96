/**
 * Writes JSON in Erlang's external term format (https://www.erlang.org/doc/apps/erts/erl_ext_dist.html), directly from
 * JSON bytes. CouchDB hashes this format to name a revision (docs/reference/documents.md#revisions). An object becomes
 * `{[{Name, Value}, ..]}` in stored order, a string a binary of its UTF-8, a number with a point or an exponent a
 * double, and another number an exact integer.
 */

import { plainTextEnd } from '../json/json-bytes.ts'

const smallIntegerTag = 97
const integerTag = 98
const atomTag = 100
const smallTupleTag = 104
const nilTag = 106
const stringTag = 107
const listTag = 108
const binaryTag = 109
const smallBigTag = 110
const largeBigTag = 111
const newFloatTag = 70

/** Longest list of bytes that has the short form. */
const stringLengthMax = 65_535
/** Integers with more digits are hashed as text, because their conversion to binary would take too long. */
const integerDigitsMax = 10_000
/** A double holds every integer of this many decimal digits exactly. */
const safeDigits = 15

const quoteByte = 0x22
const backslashByte = 0x5c
const openBracketByte = 0x5b
const closeBracketByte = 0x5d
const openBraceByte = 0x7b
const closeBraceByte = 0x7d
const commaByte = 0x2c
const minusByte = 0x2d
const plusByte = 0x2b
const pointByte = 0x2e

const powersOfTen: readonly number[] = Array.from({ length: safeDigits + 1 }, (_, i) => 10 ** i)

/** `restart` replaces a buffer that is larger than this. */
const keptBytesMax = 1024 * 1024

/** Appends terms to a buffer that grows. The JSON must be valid; a RangeError is thrown where it is not. */
export class ExternalTermWriter {
  #out: Buffer
  #end = 0
  #json: Uint8Array = noBytes
  #at = 0

  constructor(capacity: number) {
    this.#out = Buffer.allocUnsafe(capacity)
  }

  /** Returns the bytes appended since the last `restart`. The next `restart` makes them invalid. */
  bytes(): Buffer {
    return this.#out.subarray(0, this.#end)
  }

  /** Removes the appended terms. */
  restart(): void {
    this.#end = 0
    this.#json = noBytes
    if (this.#out.length > keptBytesMax) this.#out = Buffer.allocUnsafe(keptBytesMax)
  }

  /** Appends bytes as they are. */
  raw(...values: number[]): void {
    this.#reserve(values.length)
    for (const value of values) this.#out[this.#end++] = value
  }

  listHeader(length: number): void {
    if (length === 0) return this.raw(nilTag)
    this.#reserve(5)
    this.#out[this.#end] = listTag
    this.#end = this.#out.writeUInt32BE(length, this.#end + 1)
  }

  listEnd(): void {
    this.raw(nilTag)
  }

  tupleHeader(arity: number): void {
    this.raw(smallTupleTag, arity)
  }

  atom(name: string): void {
    this.#reserve(3 + name.length)
    const out = this.#out
    let end = this.#end
    out[end++] = atomTag
    out[end++] = 0
    out[end++] = name.length
    for (let i = 0; i < name.length; i++) out[end++] = name.charCodeAt(i)
    this.#end = end
  }

  binary(value: Uint8Array): void {
    this.#reserve(5 + value.length)
    this.#binaryHeader(value.length)
    this.#out.set(value, this.#end)
    this.#end += value.length
  }

  integer(value: number): void {
    this.#reserve(16)
    if (value >= 0 && value <= 255) {
      this.#out[this.#end++] = smallIntegerTag
      this.#out[this.#end++] = value
    } else if (value >= -0x80000000 && value <= 0x7fffffff) {
      this.#out[this.#end++] = integerTag
      this.#end = this.#out.writeInt32BE(value, this.#end)
    } else {
      this.#big(BigInt(value))
    }
  }

  /** Appends one JSON value. */
  json(text: Uint8Array): void {
    this.#json = text
    this.#at = 0
    this.#value()
    this.#skipSpace()
    if (this.#at !== text.length) throw new RangeError('there are bytes after the JSON value')
  }

  #reserve(length: number): void {
    if (this.#end + length <= this.#out.length) return
    const grown = Buffer.allocUnsafe(Math.max(this.#out.length * 2, this.#end + length))
    this.#out.copy(grown, 0, 0, this.#end)
    this.#out = grown
  }

  #binaryHeader(length: number): void {
    this.#out[this.#end++] = binaryTag
    this.#out[this.#end++] = length >>> 24
    this.#out[this.#end++] = length >>> 16
    this.#out[this.#end++] = length >>> 8
    this.#out[this.#end++] = length
  }

  #skipSpace(): number {
    const json = this.#json
    let code = json[this.#at]
    while (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) code = json[++this.#at]
    return code ?? 0
  }

  /** Appends the next value. Returns true when it was an integer from 0 to 255. */
  #value(): boolean {
    const code = this.#skipSpace()
    switch (code) {
      case quoteByte: this.#string(); return false
      case openBraceByte: this.#object(); return false
      case openBracketByte: this.#array(); return false
      case 0x74: this.#word('true'); return false
      case 0x66: this.#word('false'); return false
      case 0x6e: this.#word('null'); return false
      default: return this.#number(code)
    }
  }

  #word(word: string): void {
    this.#at += word.length
    this.atom(word)
  }

  #array(): void {
    this.#reserve(6)
    const start = this.#end
    this.#end += 5
    let length = 0
    let bytesOnly = true
    this.#at++
    if (this.#skipSpace() === closeBracketByte) {
      this.#at++
      this.#out[start] = nilTag
      this.#end = start + 1
      return
    }
    for (;;) {
      if (!this.#value()) bytesOnly = false
      length++
      const code = this.#skipSpace()
      this.#at++
      if (code === closeBracketByte) break
      if (code !== commaByte) throw new RangeError('broken JSON array')
    }
    if (bytesOnly && length <= stringLengthMax) {
      this.#toString(start, length)
      return
    }
    this.#out[start] = listTag
    this.#out.writeUInt32BE(length, start + 1)
    this.listEnd()
  }

  /** Rewrites a list of `length` small integers as STRING_EXT, the form in which Erlang encodes such lists. */
  #toString(start: number, length: number): void {
    const out = this.#out
    out[start] = stringTag
    out.writeUInt16BE(length, start + 1)
    let from = start + 6
    let to = start + 3
    for (let i = 0; i < length; i++, from += 2) out[to++] = out[from]!
    this.#end = to
  }

  #object(): void {
    this.#reserve(8)
    this.#out[this.#end++] = smallTupleTag
    this.#out[this.#end++] = 1
    const start = this.#end
    this.#end += 5
    let length = 0
    this.#at++
    if (this.#skipSpace() === closeBraceByte) {
      this.#at++
      this.#out[start] = nilTag
      this.#end = start + 1
      return
    }
    for (;;) {
      this.#reserve(2)
      this.#out[this.#end++] = smallTupleTag
      this.#out[this.#end++] = 2
      if (this.#skipSpace() !== quoteByte) throw new RangeError('broken JSON object')
      this.#string()
      this.#skipSpace()
      this.#at++ // the colon
      this.#value()
      length++
      const code = this.#skipSpace()
      this.#at++
      if (code === closeBraceByte) break
      if (code !== commaByte) throw new RangeError('broken JSON object')
    }
    this.#out[start] = listTag
    this.#out.writeUInt32BE(length, start + 1)
    this.listEnd()
  }

  #string(): void {
    const json = this.#json
    const start = this.#at + 1
    const end = plainTextEnd(json, start)
    if (end === json.length) throw new RangeError('broken JSON string')
    if (json[end] === backslashByte) return this.#escapedString(start)
    const length = end - start
    this.#reserve(5 + length)
    this.#binaryHeader(length)
    if (length > 64) {
      this.#out.set(json.subarray(start, end), this.#end)
      this.#end += length
    } else {
      const out = this.#out
      let to = this.#end
      for (let i = start; i < end; i++) out[to++] = json[i]!
      this.#end = to
    }
    this.#at = end + 1
  }

  #escapedString(start: number): void {
    let end = start
    while (this.#json[end] !== quoteByte) {
      end += this.#json[end] === backslashByte ? 2 : 1
      if (end >= this.#json.length) throw new RangeError('broken JSON string')
    }
    const text = Buffer.from(this.#json.buffer, this.#json.byteOffset + start - 1, end - start + 2).toString('utf8')
    this.binary(Buffer.from(JSON.parse(text) as string, 'utf8'))
    this.#at = end + 1
  }

  #number(first: number): boolean {
    const json = this.#json
    const start = this.#at
    const digitsAt = first === minusByte ? start + 1 : start
    let at = digitsAt
    let value = 0
    let code = json[at]
    while (code !== undefined && code >= 48 && code <= 57) {
      value = value * 10 + code - 48
      code = json[++at]
    }
    const digits = at - digitsAt
    if (digits === 0) throw new RangeError('broken JSON value')
    this.#at = at
    if (code === pointByte || code === 0x65 || code === 0x45) {
      this.#fraction(start, digitsAt, value, digits)
      return false
    }
    if (digits <= safeDigits) {
      if (first === minusByte) value = 0 - value
      this.integer(value)
      return value >= 0 && value <= 255
    }
    if (digits > integerDigitsMax) this.binary(json.subarray(start, at))
    else this.#big(BigInt(this.#latin1(start, at)))
    return false
  }

  /** Reads the rest of a number with a point or an exponent. `value` is that of the `digits` digits read so far. */
  #fraction(start: number, digitsAt: number, value: number, digits: number): void {
    const json = this.#json
    const point = this.#at
    let at = point + 1
    let code = json[at]
    if (json[point] === pointByte) {
      while (code !== undefined && code >= 48 && code <= 57) {
        value = value * 10 + code - 48
        code = json[++at]
      }
      const decimals = at - point - 1
      if (code !== 0x65 && code !== 0x45 && digits + decimals <= safeDigits) {
        // Both operands are exact doubles, so that their quotient is the nearest double (Clinger 1990).
        this.#at = at
        const magnitude = value / powersOfTen[decimals]!
        return this.#float(digitsAt > start ? -magnitude : magnitude)
      }
    }
    while (code !== undefined && (
      (code >= 48 && code <= 57) || code === 0x65 || code === 0x45 || code === minusByte || code === plusByte
    )) {
      code = json[++at]
    }
    this.#at = at
    this.#float(Number(this.#latin1(start, at)))
  }

  #latin1(start: number, end: number): string {
    return Buffer.from(this.#json.buffer, this.#json.byteOffset + start, end - start).toString('latin1')
  }

  #float(value: number): void {
    this.#reserve(9)
    this.#out[this.#end] = newFloatTag
    this.#end = this.#out.writeDoubleBE(value, this.#end + 1)
  }

  #big(value: bigint): void {
    const negative = value < 0n
    const magnitude = negative ? -value : value
    if (magnitude <= 0x7fffffffn) return this.integer(Number(value))
    const hex = magnitude.toString(16)
    const bytes = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex').reverse()
    this.#reserve(6 + bytes.length)
    if (bytes.length <= 255) {
      this.raw(smallBigTag, bytes.length, negative ? 1 : 0)
    } else {
      this.#out[this.#end] = largeBigTag
      this.#end = this.#out.writeUInt32BE(bytes.length, this.#end + 1)
      this.raw(negative ? 1 : 0)
    }
    this.#out.set(bytes, this.#end)
    this.#end += bytes.length
  }
}

const noBytes = new Uint8Array(0)
