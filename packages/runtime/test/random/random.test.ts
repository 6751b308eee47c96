import { expect } from 'chai'
import { RealRandom } from '../../src/random/random-real.ts'
import { SeededRandom } from '../../src/random/random-seeded.ts'
import type { Random } from '../../src/random/random.ts'

for (const [name, create] of [['RealRandom', () =>
  new RealRandom()], ['SeededRandom', () => new SeededRandom(7)]] as const) {
  describe(name, () => {
    let random: Random
    beforeEach(() => { random = create() })

    it('gives as many bytes as asked for, of every value', () => {
      for (const length of [0, 1, 7, 16, 256, 257, 5000]) expect(random.bytes(length)).to.have.length(length)
      expect(new Set(random.bytes(20_000)).size).to.equal(256)
      const small = Array.from({ length: 2000 }, () => [...random.bytes(16)]).flat()
      expect(new Set(small).size).to.equal(256)
    })

    it('does not give the same bytes twice', () => {
      const given = new Set(Array.from({ length: 3000 }, () => Buffer.from(random.bytes(8)).toString('hex')))
      expect(given.size).to.equal(3000)
    })

    it('gives fractions evenly in [0, 1)', () => {
      const fractions = Array.from({ length: 10_000 }, () => random.fraction())
      expect(fractions.every(fraction => fraction >= 0 && fraction < 1)).to.equal(true)
      const mean = fractions.reduce((sum, fraction) => sum + fraction, 0) / fractions.length
      expect(mean).to.be.within(0.47, 0.53)
    })
  })
}

describe('SeededRandom', () => {
  it('gives the same numbers for the same seed only', () => {
    const hex = (seed: number): string => Buffer.from(new SeededRandom(seed).bytes(32)).toString('hex')
    expect(hex(1)).to.equal(hex(1))
    expect(new Set([1, 2, 2 ** 32 + 1, -1, 0].map(hex)).size).to.equal(5)
  })

  it('is the sfc32 of PractRand', () => {
    // sfc32(a = 0, b = 0, c = 12345, counter = 1) after 15 discarded rounds, computed with 64-bit integers.
    let [a, b, c, counter] = [0n, 0n, 12345n, 1n]
    const mask = 0xffffffffn
    const next = (): bigint => {
      const result = (a + b + counter++) & mask
      a = b ^ (b >> 9n)
      b = (c + (c << 3n)) & mask
      c = ((((c << 21n) | (c >> 11n)) & mask) + result) & mask
      return result
    }
    for (let round = 0; round < 15; round++) next()
    const expected = Buffer.alloc(8)
    expected.writeUInt32LE(Number(next()), 0)
    expected.writeUInt32LE(Number(next()), 4)
    expect(Buffer.from(new SeededRandom(12345).bytes(8))).to.deep.equal(expected)
  })
})
