import { expect } from 'chai'
import fc from 'fast-check'
import { SortKeyEncoder } from '../../src/index.ts'
import { ComparedText, isPlainText, RootTextOrder } from '../../src/collation/root-text-order.ts'

const encoder = new SortKeyEncoder()
const order = new RootTextOrder()

function byKeys(a: string, b: string): number {
  const [left, right] = [encoder.encode(a), encoder.encode(b)]
  return left < right ? -1 : left > right ? 1 : 0
}

describe('the order of texts in root collation', () => {
  it('is that of their sort keys', () => {
    const printable = fc.string({ unit: 'grapheme-ascii', maxLength: 4 })
    const others = fc.constantFrom(
      'é', 'e\u0301', '\u0000', '\t', '\u007f', 'ß', 'l·', '·', 'й', 'и', '\u0306', 'ａ')
    const similar = fc.array(
      fc.oneof(fc.constantFrom('a', 'A', 'b', 'e', 'E', 'l', ' ', '-'), others), { maxLength: 4 },
    ).map(parts => parts.join(''))
    const text = fc.oneof(printable, similar)
    fc.assert(fc.property(text, text, text, (a, b, end) => {
      for (const [left, right] of [[a, b], [a + end, b + end], [a + b, a + end]] as const) {
        expect(Math.sign(order.compare(left, right))).to.equal(byKeys(left, right))
        expect(Math.sign(new ComparedText(left, order).compare(right))).to.equal(byKeys(left, right))
      }
    }), { numRuns: 3000 })
  })

  it('is that of their sort keys for all pairs of printable ASCII characters, which are plain', () => {
    const characters = Array.from({ length: 95 }, (_, at) => String.fromCharCode(0x20 + at))
    for (const a of characters) {
      expect(isPlainText(a)).to.equal(true)
      for (const b of characters) expect(Math.sign(order.compare(a, b)), a + b).to.equal(byKeys(a, b))
    }
    for (const other of ['', 'abc\t', '\u0000', 'é', '\u007f', '\u{1f600}']) {
      expect(isPlainText(other)).to.equal(other === '')
    }
  })

  it('is that of their sort keys for long texts, whose first difference may be an accent', () => {
    const [a, b] = [`e\u0301${'e'.repeat(50_000)}b`, `e${'e'.repeat(50_000)}a`]
    expect(order.compare(a, b)).to.equal(byKeys(a, b))
    expect(new ComparedText(a, order).compare(b)).to.equal(byKeys(a, b))
  })

  it('orders texts that are too long for a sort key piece by piece', () => {
    const long = 'é'.repeat(300_000)
    expect(order.compare(long, `f${long}`)).to.be.lessThan(0)
    expect(order.compare(`${long}a`, `${long}b`)).to.be.lessThan(0)
    expect(new ComparedText(`${long}b`, order).compare(`${long}a`)).to.be.greaterThan(0)
    expect(order.compare(`${long}a`, `${long}a\u0000`)).to.equal(0)
  })
})
