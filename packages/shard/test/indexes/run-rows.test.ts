import { expect } from 'chai'
import fc from 'fast-check'
import { compareUtf8 } from '@sectional/core'
import { placeText } from '../../src/indexes/index-keys.ts'
import { SoughtPlace } from '../../src/indexes/place-search.ts'
import { RunRows } from '../../src/indexes/run-rows.ts'

describe('the rows of a run in memory', () => {
  const text = fc.string({ unit: fc.constantFrom('\0', 'a', 'b', '\u00ff', '\uff5e', '😀', '😁'), maxLength: 5 })
  const keyText = fc.string({ unit: fc.constantFrom('\0', '\u0001', 'a', 'b', '\u00ff'), maxLength: 5 })

  it('are those of the run, and are found by place and by range', () => {
    fc.assert(fc.property(text, fc.uniqueArray(text, { maxLength: 9 }), text, text, (start, ends, one, other) => {
      const places = ends.map(end => start + end).sort(compareUtf8)
      const rows = new RunRows(places.map((place, at) => ({ place, value: Buffer.from(`value ${at}`) })))
      expect(rows.length).to.equal(places.length)
      expect(places.map((_, at) => rows.at(at).place)).to.deep.equal(places)
      expect(places.map((_, at) => String(rows.at(at).value))).to.deep.equal(places.map((_, at) => `value ${at}`))
      const before = (bound: string): number => places.filter(place => compareUtf8(place, bound) < 0).length
      for (const from of ['', start, one, start + one]) {
        expect(rows.indexOf(new SoughtPlace(from))).to.equal(before(from))
        for (const to of [other, start + other]) {
          expect(rows.within({ from, to }).map(({ place }) => place))
            .to.deep.equal(places.filter(place => compareUtf8(place, from) >= 0 && compareUtf8(place, to) < 0))
        }
      }
    }), { numRuns: 2000 })
  })

  it('are compared with sought places in the order of UTF-8', () => {
    const near = fc.string({ unit: fc.constantFrom('a', '\u00ff', '\ud7ff', '\uff5e', '😀'), maxLength: 3 })
    fc.assert(fc.property(near, near, (sought, place) => {
      const order = compareUtf8(place, sought)
      const found = new SoughtPlace(sought)
      expect([found.isBefore(place), found.isAtOrBefore(place), found.isAtOrBehind(place)])
        .to.deep.equal([order > 0, order >= 0, order <= 0])
    }), { numRuns: 2000 })
  })

  it('have keys, ids and numbers, also when these are escaped, long, or the same in all rows', () => {
    const number = fc.constantFrom(0, 1, 2, 0x77, 0x78, 0x10000)
    const place = fc.record({ key: keyText, id: text, number })
    fc.assert(fc.property(keyText, text, fc.array(place, { minLength: 1, maxLength: 5 }), fc.boolean(),
      (key, id, found, isSameKey) => {
        const places = found.map(({ key: end, id: idEnd, number: last }) => isSameKey
          ? { key, id: id + idEnd, number: last } : { key: key + end, id, number: last })
        const sorted = places.toSorted((a, b) => compareUtf8(placeText(a), placeText(b)))
        const rows = new RunRows(sorted.map(each => ({ place: placeText(each), value: new Uint8Array(0) })))
        expect(sorted.map((_, at) => rows.rowPlaceAt(at))).to.deep.equal(sorted)
      }), { numRuns: 2000 })
  })

  it('hold no memory that is not counted', () => {
    const rows = new RunRows(['a', 'b'].map(place => ({ place, value: Buffer.from('value') })))
    expect(rows.valueAt(0).buffer.byteLength).to.be.below(rows.bytes)
  })

  it('may have more than 64 KiB', () => {
    const values = ['a', 'b', 'c'].map(letter => letter.repeat(50_000))
    const rows = new RunRows(values.map((value, at) => ({ place: `place ${at}`, value: Buffer.from(value) })))
    expect(values.map((_, at) => String(rows.at(at).value))).to.deep.equal(values)
    expect(rows.bytes).to.be.above(150_000)
  })
})
