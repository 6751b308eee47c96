import { expect } from 'chai'
import fc from 'fast-check'
import { compareUtf8 } from '../../src/encoding/text-order.ts'

describe('order of texts', () => {
  it('is the order of their UTF-8 bytes', () => {
    const texts = fc.array(fc.constantFrom(
      'a', 'b', '\u0000', 'é', '\ud7ff', '\ue000', '\uffff', '\u{10000}', '\u{1f600}',
    ))
      .map(parts => parts.join(''))
    fc.assert(fc.property(texts, texts, (a, b) => {
      expect(Math.sign(compareUtf8(a, b))).to.equal(Buffer.compare(Buffer.from(a), Buffer.from(b)))
    }))
  })
})
