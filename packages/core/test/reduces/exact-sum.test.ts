import { expect } from 'chai'
import fc from 'fast-check'
import { ByteWriter } from '../../src/encoding/byte-writer.ts'
import { ByteReader } from '../../src/encoding/varint.ts'
import { ExactSum } from '../../src/reduces/exact-sum.ts'

/** Finite doubles of all magnitudes, and such that cancel each other or make integral sums. */
const numbers = fc.array(fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom(0.1, 0.2, -0.3, 0.5, -0.5, 1e16, -1e16, 2 ** 53, 1 - 2 ** 53, 5e-324, 1.7e308, -1.7e308, 2 ** 970),
  fc.maxSafeInteger(),
  fc.integer({ min: -1000, max: 1000 }).map(cents => cents / 100),
), { minLength: 1, maxLength: 200, size: 'max' })

function sumOf(values: readonly number[]): ExactSum {
  const sum = new ExactSum()
  for (const value of values) sum.add(value)
  return sum
}

/** Returns a double times 2^1074, which is an integer, from its bits. */
function scaled(value: number): bigint {
  const bits = new BigUint64Array(Float64Array.of(value).buffer)[0]!
  const fraction = bits & (1n << 52n) - 1n
  const exponent = bits >> 52n & 0x7ffn
  const magnitude = exponent === 0n ? fraction : (fraction | 1n << 52n) << exponent - 1n
  return value < 0 ? -magnitude : magnitude
}

function plainSum(values: readonly number[]): bigint {
  return values.reduce((sum, value) => sum + scaled(value), 0n)
}

describe('exact sum', () => {
  it('is rounded to the nearest double, or exact when it is an integer of up to 21 digits', () => {
    fc.assert(fc.property(numbers, values => {
      const exact = plainSum(values)
      const json = sumOf(values).toJson()
      const unit = 1n << 1074n
      if (exact % unit === 0n && exact / unit < 10n ** 21n && exact / unit > -(10n ** 21n)) {
        expect(json).to.equal((exact / unit).toString())
        return
      }
      if (json === undefined) {
        const overflow = scaled(Number.MAX_VALUE) + (1n << 2044n)
        expect(exact >= overflow || exact <= -overflow).to.equal(true)
        return
      }
      const distance = (double: number): bigint => {
        const difference = scaled(double) - exact
        return difference < 0n ? -difference : difference
      }
      const near = Number(json)
      for (const neighbour of [near * (1 + 2 ** -52), near * (1 - 2 ** -52), near + 5e-324, near - 5e-324]) {
        if (Number.isFinite(neighbour)) expect(distance(near) <= distance(neighbour)).to.equal(true)
      }
    }), { numRuns: 2000 })
  })

  it('does not depend on order and grouping, also when it was encoded in between', () => {
    fc.assert(fc.property(numbers, values => {
      const backwards = sumOf(values.toReversed())
      const halves = new ExactSum()
      for (const part of [values.filter((_, at) => at % 3 === 0), values.filter((_, at) => at % 3 !== 0)]) {
        const writer = new ByteWriter()
        sumOf(part).encode(writer)
        const reader = new ByteReader(writer.result())
        halves.addEncoded(reader)
        expect(reader.done).to.equal(true)
      }
      expect(backwards.toJson()).to.equal(sumOf(values).toJson())
      expect(halves.toJson()).to.equal(sumOf(values).toJson())
    }), { numRuns: 2000 })
  })

  it('keeps what additions of doubles lose', () => {
    expect(sumOf([1e16, 1, -1e16]).toJson()).to.equal('1')
    expect(sumOf([1e100, 0.25, -1e100]).toJson()).to.equal('0.25')
    expect(sumOf([1.7e308, 1.7e308, -1.7e308]).toJson()).to.equal('1.7e+308')
    expect(sumOf([2 ** 53, 1]).toJson()).to.equal('9007199254740993')
    expect(sumOf(Array<number>(10).fill(0.1)).toJson()).to.equal('1')
    expect(sumOf([-0]).toJson()).to.equal('0')
  })

  it('is undefined beyond the range of doubles', () => {
    expect(sumOf([1.7e308, 1.7e308]).toJson()).to.equal(undefined)
    expect(sumOf([-1.7e308, -1.7e308]).toJson()).to.equal(undefined)
  })

  it('adds squares of integers exactly', () => {
    const sum = new ExactSum()
    sum.addSquare(94906267)
    expect(sum.toJson()).to.equal((94906267n ** 2n).toString())
    sum.addSquare(0.5)
    sum.addSquare(1e200)
    expect(sum.toJson()).to.equal(undefined)
  })

  it('needs two bytes for a small integer and at most 350 for any sum of moderate doubles', () => {
    const bytesOf = (values: readonly number[]): number => {
      const writer = new ByteWriter()
      sumOf(values).encode(writer)
      return writer.result().length
    }
    expect(bytesOf([1, 2, 3])).to.equal(2)
    const doubles = fc.array(fc.double({ noNaN: true, min: -1e290, max: 1e290 }), { maxLength: 500, size: 'max' })
    fc.assert(fc.property(doubles, values => {
      expect(bytesOf(values)).to.be.at.most(350)
      expect(sumOf(values).toJson()).to.equal(sumOf(values.toReversed()).toJson())
    }), { numRuns: 100 })
  })

  it('refuses bytes that are not a sum', () => {
    for (const bytes of [[], [3], [0], [2, 1], [2, 1, 0, 0, 0, 0, 0, 0, 0xf0, 0x7f, 0]]) {
      expect(() => new ExactSum().addEncoded(new ByteReader(Buffer.from(bytes)))).to.throw(RangeError)
    }
  })
})
