import { ApiError } from '@sectional/core'
import { expect } from 'chai'
import { byteRanges, contentRange } from '../../src/attachments/byte-ranges.ts'

describe('byte ranges', () => {
  it('are cut to the content', () => {
    expect(byteRanges('bytes=0-4', 26)).to.deep.equal([{ start: 0, end: 5 }])
    expect(byteRanges('bytes=20-', 26)).to.deep.equal([{ start: 20, end: 26 }])
    expect(byteRanges('bytes=-3', 26)).to.deep.equal([{ start: 23, end: 26 }])
    expect(byteRanges('bytes=-30', 26)).to.deep.equal([{ start: 0, end: 26 }])
    expect(byteRanges('bytes=24-99, 1-1', 26)).to.deep.equal([{ start: 24, end: 26 }, { start: 1, end: 2 }])
    expect(contentRange({ start: 24, end: 26 }, 26)).to.equal('bytes 24-25/26')
  })

  it('are read as leniently as CouchDB reads them', () => {
    expect(byteRanges('bytes=5', 26)).to.deep.equal([{ start: 5, end: 26 }])
    expect(byteRanges('bytes=,0-1,', 26)).to.deep.equal([{ start: 0, end: 2 }])
    expect(byteRanges('bytes=+1-3', 26)).to.deep.equal([{ start: 1, end: 4 }])
    expect(byteRanges('bytes=5-,0-', 26), 'all of it is among them').to.equal(null)
  })

  it('that cannot be read, are too many or ask for everything mean the whole', () => {
    for (const header of [
      undefined, 'bytes=0-', 'lines=1-2', 'bytes=a-b', 'nonsense', 'bytes=-', `bytes=${'0-1,'.repeat(9)}2-3`,
    ]) {
      expect(byteRanges(header, 10), header).to.equal(null)
    }
  })

  it('outside the content or the wrong way round are refused', () => {
    for (const header of ['bytes=10-', 'bytes=50-60', 'bytes=7-3', 'bytes=-0', 'bytes=0-1,20-30']) {
      expect(() => byteRanges(header, 10), header).to.throw(ApiError, 'Requested range not satisfiable')
    }
  })
})
