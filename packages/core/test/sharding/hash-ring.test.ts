import { expect } from 'chai'
import fc from 'fast-check'
import {
  documentHash, findRange, formatRange, parseRange, partitionHash, partitionOf, rangeContains, shardCountMax,
  shardRanges,
} from '../../src/index.ts'

describe('hash ring', () => {
  it('hashes ids by CRC-32 of their UTF-8', () => {
    expect(documentHash('123456789', false)).to.equal(0xcbf43926)
    expect(documentHash('', false)).to.equal(0)
    expect(documentHash('été', false)).to.equal(documentHash(Buffer.from('été').toString(), false))
  })

  it('hashes only the partition in partitioned databases, but all of a reserved id', () => {
    expect(documentHash('red:1', true)).to.equal(partitionHash('red'))
    expect(documentHash('red:a:b', true)).to.equal(documentHash('red:c', true))
    expect(documentHash('red:1', false)).to.not.equal(documentHash('red:2', false))
    expect(documentHash('_design/a:b', true)).to.equal(documentHash('_design/a:b', false))
    expect([partitionOf('a:b:c'), partitionOf('a'), partitionOf('_design/a:b')]).to.deep.equal(['a', null, null])
  })

  it('divides the ring into equal ranges, and the last one takes the remainder', () => {
    expect(shardRanges(1).map(formatRange)).to.deep.equal(['00000000-ffffffff'])
    expect(shardRanges(2).map(formatRange)).to.deep.equal(['00000000-7fffffff', '80000000-ffffffff'])
    expect(shardRanges(3).map(formatRange)).to.deep.equal([
      '00000000-55555554', '55555555-aaaaaaa9', 'aaaaaaaa-ffffffff',
    ])
    for (const count of [0, -1, 1.5, shardCountMax + 1]) expect(() => shardRanges(count)).to.throw(RangeError)
  })

  it('has exactly one range for every hash', () => {
    fc.assert(fc.property(fc.integer({ min: 1, max: shardCountMax }), fc.nat(0xffffffff), (count, hash) => {
      const ranges = shardRanges(count)
      expect(findRange(ranges, hash)).to.equal(ranges.findIndex(range => rangeContains(range, hash)))
      expect(ranges.filter(range => rangeContains(range, hash))).to.have.length(1)
    }))
    expect(findRange(shardRanges(4).slice(1), 0)).to.equal(-1)
  })

  it('has each end of a range in this range alone', () => {
    for (const count of [1, 2, 3, 7, shardCountMax]) {
      const ranges = shardRanges(count)
      for (const [index, { begin, end }] of ranges.entries()) {
        for (const hash of [begin, end]) {
          expect(findRange(ranges, hash)).to.equal(index)
          expect([index - 1, index, index + 1].map(at => ranges[at] !== undefined && rangeContains(ranges[at], hash)))
            .to.deep.equal([false, true, false])
        }
      }
    }
  })

  it('parses the ranges that it formats', () => {
    for (const range of shardRanges(7)) expect(parseRange(formatRange(range))).to.deep.equal(range)
    for (const text of ['', '00000000', '80000000-7fffffff', '0-1', '00000000-7FFFFFFF', ' 00000000-7fffffff']) {
      expect(() => parseRange(text), text).to.throw(RangeError)
    }
  })
})
