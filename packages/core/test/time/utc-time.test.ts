import { expect } from 'chai'
import fc from 'fast-check'
import { formatHttpTime, formatIsoTime, parseIsoTime } from '@sectional/core'

describe('UTC times', () => {
  const anyTime = fc.integer({ min: -62_135_596_800, max: 253_402_300_799 }).map(seconds => seconds * 1000)

  it('agree with the platform\'s dates in both forms', () => {
    fc.assert(fc.property(anyTime, ms => {
      const date = new Date(ms)
      expect(formatIsoTime(ms)).to.equal(date.toISOString().replace('.000Z', 'Z'))
      expect(formatHttpTime(ms)).to.equal(date.toUTCString())
    }), { numRuns: 2000 })
  })

  it('are parsed to the same time after formatting', () => {
    fc.assert(fc.property(anyTime, ms => { expect(parseIsoTime(formatIsoTime(ms))).to.equal(ms) }))
  })

  it('are formatted without milliseconds', () => {
    expect(formatIsoTime(1_753_113_600_999)).to.equal('2025-07-21T16:00:00Z')
  })

  it('are refused when the text is not a valid time', () => {
    for (const text of [
      '', 'now', '2025-02-30T00:00:00Z', '2025-13-01T00:00:00Z', '2025-01-01T24:00:00Z', '2025-01-01T00:00:00',
      '2025-01-01', '2025-01-01T00:00:00.5Z',
    ]) {
      expect(parseIsoTime(text), text).to.equal(null)
    }
  })
})
