import assert from 'node:assert/strict'
import fc from 'fast-check'
import { placeKey, placeText, readPlace } from '../../src/indexes/index-keys.ts'

describe('places of rows', () => {
  it('are read as they were written, with short and long sort keys', () => {
    const bytes = fc.constantFrom('\0', '\0\u0001', '\u0001', '\u0002', 'a', '\u00ff')
    const keys = fc.tuple(fc.array(bytes, { maxLength: 6 }), fc.constantFrom(1, 200, 2000))
      .map(([parts, times]) => parts.join('').repeat(times))
    const ids = fc.array(fc.constantFrom('\0', '\u0001', 'b', '\u20ac', '\u{1f600}'), { maxLength: 5 })
      .map(parts => parts.join(''))
    fc.assert(fc.property(keys, ids, fc.nat(20_000), (key, id, number) => {
      const place = placeText({ key, id, number })
      assert.deepEqual(readPlace(place), { key, id, number })
      assert.equal(placeKey(place), key)
    }))
  })
})
