import { expect } from 'chai'
import { combined, reduced, reductionOf, rowOf } from './reduce-rows.ts'
import { ByteWriter } from '../../src/encoding/byte-writer.ts'
import { ByteReader } from '../../src/encoding/varint.ts'
import { HyperLogLog } from '../../src/reduces/hyper-log-log.ts'
import { keyHash } from '../../src/reduces/key-hash.ts'
import { SortKeyEncoder } from '@sectional/core'

const standardError = 1.04 / Math.sqrt(2048)

/** Returns the relative error of the estimate for so many different keys of that sample. */
function errorOf(count: number, sample: number, keyOf: (i: number) => unknown): number {
  const keys = new SortKeyEncoder('raw')
  const sketch = new HyperLogLog()
  for (let i = 0; i < count; i++) sketch.add(keyHash(keys.encode([sample, keyOf(i)])))
  return sketch.estimate() / count - 1
}

describe('estimates of _approx_count_distinct', () => {
  it('are exact for few keys', () => {
    const rows = Array.from({ length: 28 }, (_, i) => rowOf('null', `user-${i % 7}`, `d${i}`))
    expect(reduced('_approx_count_distinct', rows)).to.equal(7)
    const pairs = Array.from({ length: 256 }, (_, i) => rowOf('null', [i]))
    expect(reduced('_approx_count_distinct', [...pairs, ...pairs])).to.equal(256)
  })

  it('regard keys as equal that the collation regards as equal', () => {
    const rows = [rowOf('1', '\u00e9'), rowOf('1', 'e\u0301'), rowOf('1', 0), rowOf('1', -0)]
    expect(reduced('_approx_count_distinct', rows)).to.equal(2)
  })

  for (const [count, samples] of [[100, 20], [257, 20], [1000, 20], [5000, 20], [20_000, 10], [100_000, 4]] as const) {
    it(`are within four standard errors for ${count} keys, and half of them within one`, () => {
      for (const keyOf of [(i: number) => i, (i: number) => `user-${i}@example.org`]) {
        const errors = Array.from({ length: samples }, (_, sample) => Math.abs(errorOf(count, sample, keyOf)))
        expect(Math.max(...errors)).to.be.below(4 * standardError)
        expect(errors.toSorted((a, b) => a - b)[Math.floor(samples / 2) - 1]).to.be.below(standardError)
      }
    })
  }

  it('are within four standard errors for 1,000,000 keys', () => {
    expect(Math.abs(errorOf(1_000_000, 0, i => i))).to.be.below(4 * standardError)
  }).timeout(20_000)

  it('have states of at most 1,540 bytes', () => {
    for (const count of [1, 256, 257, 3000]) {
      const rows = Array.from({ length: count }, (_, i) => rowOf('null', i))
      expect(reductionOf('_approx_count_distinct', rows).encode().length).to.be.at.most(1540)
    }
  })

  it('are the same when states with few and with many keys are combined in any order', () => {
    const rows = Array.from({ length: 9000 }, (_, i) => rowOf('null', i % 5000))
    const states = [0, 100, 2000, 2010, 6000, 9000].map((start, at, starts) =>
      reductionOf('_approx_count_distinct', rows.slice(start, starts[at + 1])).encode()).slice(0, -1)
    const whole = reductionOf('_approx_count_distinct', rows).result()
    for (const parts of [states, states.toReversed(), [...states.slice(2), ...states.slice(0, 2)]]) {
      expect(combined('_approx_count_distinct', parts).result()).to.equal(whole)
    }
  })

  it('keep the hashes that states contain', () => {
    // Values of MurmurHash3 x86_32 for both seeds, https://github.com/aappleby/smhasher
    expect(Math.floor(keyHash('') / 0x10000)).to.equal(0)
    expect(Math.floor(keyHash('test') / 0x10000)).to.equal(0xba6bd213)
    expect(Math.floor(keyHash('Hello, world!') / 0x10000)).to.equal(0xc0363e43)
    const others = { a: 0x7fa09ea6, aa: 0x5d211726, aaa: 0x283e0130, aaaa: 0x5a97808a, test: 0x704b81dc }
    for (const [key, hash] of Object.entries(others)) expect(keyHash(key) % 0x10000).to.equal(hash >>> 16)
  })

  it('count hashes with long runs of zeros', () => {
    const sketch = new HyperLogLog()
    for (let i = 0; i < 300; i++) sketch.add(i === 299 ? 0 : i * 2 ** 32)
    const writer = new ByteWriter()
    sketch.encode(writer)
    const copy = new HyperLogLog()
    copy.addEncoded(new ByteReader(writer.result()))
    expect(copy.estimate()).to.equal(sketch.estimate())
    expect(Number.isFinite(sketch.estimate())).to.equal(true)
  })

  it('refuse bytes that are not a state', () => {
    for (const bytes of [[], [2], [0, 1, 1], [1, 0], [0, 0xff, 0xff, 0xff, 0xff, 0x7f]]) {
      expect(() => new HyperLogLog().addEncoded(new ByteReader(Buffer.from(bytes)))).to.throw(RangeError)
    }
  })
})
