import { expect } from 'chai'
import fc from 'fast-check'
import { placeText } from '../../src/indexes/index-keys.ts'
import { RunRows } from '../../src/indexes/run-rows.ts'
import { ScannedRows } from '../../src/indexes/scanned-rows.ts'

/** The rows of a run with the keys `key 0`, `key 1` and so on. */
function runOf(rows: number): RunRows {
  return new RunRows(Array.from({ length: rows }, (_, at) => (
    { place: placeText({ key: `key ${at}`, id: `id ${at}`, number: at }), value: Buffer.from(`value ${at}`) })))
}

describe('the rows of a scan', () => {
  const part = fc.tuple(fc.nat(9), fc.nat(9), fc.nat(12), fc.nat(3)).map(([one, other, limit, range]) => (
    { first: Math.min(one, other), end: Math.max(one, other), limit, range }))

  it('are the first ones of each part of a run, in the direction of the scan', () => {
    const run = runOf(9)
    const numbers = Array.from({ length: run.length }, (_, at) => at)
    fc.assert(fc.property(fc.array(part, { maxLength: 4 }), fc.boolean(), (parts, descending) => {
      const scanned = new ScannedRows(descending)
      const expected = parts.filter(({ first, end }) => first < end).flatMap(({ range, first, end, limit }) => {
        scanned.add(range, run, first, end, limit)
        const within = numbers.slice(first, end)
        return (descending ? within.reverse() : within).slice(0, limit).map(number => `${range} ${number}`)
      })
      expect(scanned.length).to.equal(expected.length)
      const rows = [...scanned]
      expect(rows.map(({ range, number }) => `${range} ${number}`)).to.deep.equal(expected)
      for (const { key, id, number, value } of rows) {
        expect([key, id, String(value)]).to.deep.equal([`key ${number}`, `id ${number}`, `value ${number}`])
      }
      expect(rows.map((_, at) => scanned.at(at))).to.deep.equal(rows)
      expect(scanned.at(rows.length)).to.equal(undefined)
    }))
  })
})
