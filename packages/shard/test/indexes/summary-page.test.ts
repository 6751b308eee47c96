import { expect } from 'chai'
import fc from 'fast-check'
import { compareUtf8 } from '@sectional/core'
import { SoughtPlace } from '../../src/indexes/place-search.ts'
import { decodePage, encodePage } from '../../src/indexes/summary-page.ts'

describe('a page of summaries', () => {
  it('finds the entry in which a place is, and counts the rows before it', () => {
    const text = fc.string({ unit: fc.constantFrom('\0', 'a', 'b', '\u00ff', '\uff5e', '😀'), maxLength: 6 })
    fc.assert(fc.property(text, fc.uniqueArray(text, { minLength: 1, maxLength: 9 }), text, (start, ends, sought) => {
      const entries = ends.map(end => start + end).sort(compareUtf8)
        .map((place, at) => ({ place, count: at + 1, value: Buffer.from(place) }))
      const page = decodePage(encodePage(entries))
      expect(page.entries.map(({ place, count }) => ({ place, count })))
        .to.deep.equal(entries.map(({ place, count }) => ({ place, count })))
      for (const place of [start + sought, ...entries.map(each => each.place)]) {
        const before = entries.filter(each => compareUtf8(each.place, place) <= 0)
        const at = Math.max(0, before.length - 1)
        expect(page.indexOf(new SoughtPlace(place))).to.equal(at)
        expect(page.entries[at]!.before).to.equal(before.slice(0, at).reduce((sum, { count }) => sum + count, 0))
      }
    }), { numRuns: 1000 })
  })
})
