import { expect } from 'chai'
import fc from 'fast-check'
import { encodeViewRow } from '@sectional/core'
import { viewRowBytesMax, writeViewRow } from '../../src/lists/view-row-bytes.ts'

describe('the row of a view that is written from its bytes', () => {
  const unit = fc.constantFrom('a', '"', '\\', '\u0000', '\n', '\u007f', 'é', '\uffff', '😀', '\ud800')
  const text = fc.string({ unit })

  it('is the JSON of its id, key and value, and has room where it says so', () => {
    fc.assert(fc.property(text, fc.json(), fc.json(), fc.boolean(), fc.nat(9), (id, key, value, isFirst, at) => {
      const row = encodeViewRow(key, value)
      const buffer = Buffer.alloc(at + viewRowBytesMax(id, row), 0xff)
      const end = writeViewRow(buffer, at, id, row, isFirst)
      expect(buffer.toString('utf8', at, end))
        .to.equal(`${isFirst ? '' : ',\r\n'}{"id":${JSON.stringify(id)},"key":${key},"value":${value}}`)
      expect([...buffer.subarray(0, at), ...buffer.subarray(end)].every(byte => byte === 0xff)).to.equal(true)
    }), { numRuns: 1000 })
  })

  it('is refused when its bytes are no row', () => {
    expect(() => writeViewRow(Buffer.alloc(100), 0, 'a', Buffer.from([5, 0x31]), true)).to.throw(RangeError)
  })
})
