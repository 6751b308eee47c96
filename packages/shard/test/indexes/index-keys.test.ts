import assert from 'node:assert/strict'
import fc from 'fast-check'
import { compareUtf8, type RowPlace } from '@sectional/core'
import {
  groupRange, keyRange, type PlaceRange, placeText, readPlace, separatingPlace,
} from '../../src/indexes/index-keys.ts'

const number = fc.constantFrom(0, 1, 0x77, 0x78, 1000, 100_000)
const id = fc.string({
  unit: fc.constantFrom('\0', '\u0001', 'b', '\u20ac', '\uff5e', '\u{1f600}', '\u{1f601}'), maxLength: 5,
})
const key = fc.array(fc.constantFrom('\0', '\0\u0001', '\u0001', '\u0002', 'a', '\u00ff'), { maxLength: 6 })
  .map(parts => parts.join(''))
const place = fc.record({ key, id, number }) as fc.Arbitrary<RowPlace>

function isWithin(text: string, { from, to }: PlaceRange): boolean {
  return compareUtf8(from, text) <= 0 && compareUtf8(text, to) < 0
}

describe('places of rows', () => {
  it('are read as they were written, with short and long sort keys', () => {
    fc.assert(fc.property(place, fc.constantFrom(1, 200, 2000), (row, times) => {
      const long = { ...row, key: row.key.repeat(times) }
      assert.deepEqual(readPlace(placeText(long)), long)
    }))
  })

  it('are separated by the shortest text that UTF-8 can represent', () => {
    fc.assert(fc.property(place, place, fc.boolean(), (row, other, isSameKey) => {
      const texts = [placeText(row), placeText({ ...other, ...(isSameKey && { key: row.key }) })]
      const [before, behind] = texts.sort(compareUtf8) as [string, string]
      fc.pre(before !== behind)
      const separator = separatingPlace(before, behind)
      assert.ok(isWithin(separator, { from: before, to: `${behind}\0` }) && separator !== before)
      assert.ok(behind.startsWith(separator))
      assert.equal(Buffer.from(separator).toString(), separator)
      assert.ok(before.startsWith(separator.slice(0, separator.codePointAt(separator.length - 2)! > 0xffff ? -2 : -1)))
    }), { numRuns: 5000 })
  })

  it('of one key, and of the keys with one beginning, are ranges', () => {
    fc.assert(fc.property(place, key, (row, start) => {
      assert.equal(isWithin(placeText(row), keyRange(start)), row.key === start)
      const began = { ...row, key: start + row.key }
      assert.ok(isWithin(placeText(began), groupRange(start)))
      if (!row.key.startsWith(start) && !start.startsWith(row.key)) {
        assert.ok(!isWithin(placeText(row), groupRange(start)))
      }
    }), { numRuns: 5000 })
  })
})
