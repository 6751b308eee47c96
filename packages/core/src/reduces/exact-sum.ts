/**
 * Sums of doubles without rounding errors. The sum is rounded once, when it is converted to text, so it depends neither
 * on the order of the numbers nor on how they were grouped.
 *
 * Integers are added to an integer as long as the result is a safe one. All other numbers are added to an expansion: a
 * list of doubles that do not overlap, whose sum is exact (J. R. Shewchuk, "Adaptive Precision Floating-Point
 * Arithmetic", 1997, section 2). An expansion that becomes longer than `partsMax` is compressed.
 */
import type { ByteWriter } from '../encoding/byte-writer.ts'
import type { ByteReader } from '../encoding/varint.ts'
import { ReduceFailure } from './reduce-failure.ts'

/** As many doubles as are needed for all bits of the range of doubles. */
const partsMax = 40
/** Numbers from here on are added as bigints, so that the expansion cannot overflow in 2^53 additions. */
const largeMin = 2 ** 970
/** Integral sums below are written with all their digits, as JavaScript writes integral numbers. */
const digitsBelow = 10n ** 21n
/** Bits of a bigint that are rounded to a double: 53, and enough to tell on which side of the middle the rest is. */
const roundedBits = 64
const mantissaBits = 53
const exponentMin = -1074

const positiveTag = 0
const negativeTag = 1
const expansionTag = 2

export class ExactSum {
  /** A safe integer. The sum is the sum of these three fields. */
  #integer = 0
  /** From the smallest magnitude to the greatest; without zeros. */
  readonly #expansion: number[] = []
  #large = 0n

  /** @throws ReduceFailure for an infinite number, as which JSON.parse reads for instance 1e400 */
  add(value: number): void {
    const integer = this.#integer + value
    // A safe sum of two integers is exact.
    if (Number.isSafeInteger(integer) && Number.isInteger(value)) this.#integer = integer
    else if (Math.abs(value) >= largeMin) this.#large += largeInteger(value)
    else this.#expand(value)
  }

  /** Adds a number as often as `count` says. @throws ReduceFailure as `add` */
  addTimes(value: number, count: number): void {
    const product = value * count
    // Such a product is exact. Other numbers are doubled, which is exact too, as long as they stay finite.
    if (Number.isSafeInteger(product) && Number.isInteger(value)) return this.add(product)
    let term = value
    let left = count
    for (; left > 1 && Number.isFinite(term * 2); left = Math.floor(left / 2)) {
      if (left % 2 === 1) this.add(term)
      term *= 2
    }
    for (; left > 0; left--) this.add(term)
  }

  /** Adds the square of a number: that of an integer exactly, that of another number rounded to a double. */
  addSquare(value: number): void {
    const square = value * value
    if (!Number.isInteger(value) || Number.isSafeInteger(square)) this.add(square)
    else this.#large += largeInteger(value) ** 2n
  }

  encode(writer: ByteWriter): void {
    if (this.#expansion.length === 0 && this.#large === 0n) {
      writer.byte(this.#integer < 0 ? negativeTag : positiveTag)
      writer.varint(Math.abs(this.#integer))
      return
    }
    writer.byte(expansionTag)
    writer.varint(this.#expansion.length + 1)
    writer.double(this.#integer)
    for (const part of this.#expansion) writer.double(part)
    writer.text(this.#large === 0n ? '' : this.#large.toString(), 'latin1')
  }

  /** Adds a sum that `encode` has written. @throws RangeError for other bytes */
  addEncoded(reader: ByteReader): void {
    const tag = reader.byte()
    if (tag === positiveTag) this.add(reader.varint())
    else if (tag === negativeTag) this.add(-reader.varint())
    else if (tag === expansionTag) {
      for (let count = reader.varint(); count > 0; count--) this.add(finite(reader.double()))
      const large = reader.text(reader.varint(), 'latin1')
      if (large !== '') this.#large += bigintOf(large)
    } else throw new RangeError(`${tag} is not the tag of a sum`)
  }

  /**
   * Returns the sum as JSON text: an integer below 10^21 with all its digits, also beyond 2^53, and any other number as
   * the nearest double. Returns undefined when the sum is beyond the range of doubles.
   */
  toJson(): string | undefined {
    const near = this.#integer + (this.#expansion[0] ?? 0)
    const isShort = this.#expansion.length <= 1 && this.#large === 0n
    if (isShort && Math.abs(near) <= Number.MAX_SAFE_INTEGER) return String(near)
    return this.#exactJson()
  }

  #exactJson(): string | undefined {
    let { mantissa, exponent } = { mantissa: this.#large + BigInt(this.#integer), exponent: 0 }
    for (const part of this.#expansion) {
      const binary = binaryOf(part)
      const lower = Math.min(exponent, binary.exponent)
      mantissa = (mantissa << BigInt(exponent - lower)) + (binary.mantissa << BigInt(binary.exponent - lower))
      exponent = lower
    }
    const integer = mantissa >> BigInt(-exponent)
    const isIntegral = integer << BigInt(-exponent) === mantissa
    if (isIntegral && integer < digitsBelow && -integer < digitsBelow) return integer.toString()
    const rounded = roundToDouble(mantissa, exponent)
    return Number.isFinite(rounded) ? String(rounded) : undefined
  }

  /** Adds a number to the expansion. */
  #expand(value: number): void {
    const expansion = this.#expansion
    let kept = 0
    let rest = value
    for (const part of expansion) {
      const [greater, smaller] = Math.abs(rest) < Math.abs(part) ? [part, rest] : [rest, part]
      rest = greater + smaller
      const error = smaller - (rest - greater)
      if (error !== 0) expansion[kept++] = error
    }
    expansion.length = kept
    if (rest !== 0) expansion.push(rest)
    if (expansion.length > partsMax) this.#compress()
  }

  /**
   * Adds neighbours from the greatest on, so that each double takes as many bits as it can. Each one is then less than
   * 2^-53 of the one before, which bounds their number by `partsMax`.
   */
  #compress(): void {
    const expansion = this.#expansion
    const parts: number[] = []
    let rest = expansion.pop()!
    for (const part of expansion.reverse()) {
      const sum = rest + part
      const error = part - (sum - rest)
      if (error !== 0) parts.push(sum)
      rest = error === 0 ? sum : error
    }
    parts.push(rest)
    expansion.splice(0, expansion.length, ...parts.reverse())
  }
}

/** Returns a finite double as an integral mantissa times 2 to an exponent from -1074 to 0. */
function binaryOf(value: number): { readonly mantissa: bigint; readonly exponent: number } {
  let mantissa = value
  let exponent = 0
  while (!Number.isInteger(mantissa)) {
    // The multiplication is exact. Every double is integral when it is multiplied by 2^1074.
    const step = Math.abs(mantissa) < 1 ? Math.min(mantissaBits, exponent - exponentMin) : 1
    mantissa *= 2 ** step
    exponent -= step
  }
  return { mantissa: BigInt(mantissa), exponent }
}

/** Rounds mantissa times 2 to the exponent to the nearest double, which may be infinite. */
function roundToDouble(mantissa: bigint, exponent: number): number {
  const magnitude = mantissa < 0n ? -mantissa : mantissa
  const dropped = Math.max(0, magnitude.toString(2).length - roundedBits)
  const kept = magnitude >> BigInt(dropped)
  const sticky = kept << BigInt(dropped) === magnitude ? 0n : 1n
  const rounded = Number(kept | sticky) * 2 ** (exponent + dropped)
  return mantissa < 0n ? -rounded : rounded
}

/** Returns a number that is integral unless it is infinite. */
function largeInteger(value: number): bigint {
  if (Number.isFinite(value)) return BigInt(value)
  throw new ReduceFailure('A number is beyond the range of doubles', 'null')
}

function finite(value: number): number {
  if (!Number.isFinite(value)) throw new RangeError('a part of a sum is not finite')
  return value
}

function bigintOf(text: string): bigint {
  if (!/^-?\d{1,1000}$/.test(text)) throw new RangeError('a part of a sum is not an integer')
  return BigInt(text)
}
