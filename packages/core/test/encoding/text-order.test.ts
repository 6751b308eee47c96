import { expect } from 'chai'
import fc from 'fast-check'
import { compareUtf8 } from '../../src/encoding/text-order.ts'

describe('order of texts', () => {
  it('is the order of their UTF-8 bytes', () => {
    const texts = fc.array(fc.constantFrom(
      'a', 'b', '\u0000', 'é', '\ud7ff', '\ue000', '\uffff', '\u{10000}', '\u{1f600}',
    ))
      .map(parts => parts.join(''))
    const shared = fc.oneof(fc.constant(0), fc.integer({ min: 505, max: 520 }), fc.nat(5000))
      .map(length => 'x'.repeat(length))
    fc.assert(fc.property(shared, texts, texts, (start, left, right) => {
      const [a, b] = [start + left, start + right]
      expect(Math.sign(compareUtf8(a, b))).to.equal(Buffer.compare(Buffer.from(a), Buffer.from(b)))
    }))
  })
})
