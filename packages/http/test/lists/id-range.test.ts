import { expect } from 'chai'
import fc from 'fast-check'
import { compareUtf8 } from '@sectional/core'
import { selectNames } from '../../src/databases/database-names.ts'
import { intersect, rangeHolds, requestedRange } from '../../src/lists/id-range.ts'
import { listParameters } from '../../src/lists/list-parameters.ts'
import { Query } from '../../src/request/query.ts'

const id = fc.constantFrom('', 'a', 'a:', 'b', '_design/a', '_design0', 'é', '😀', '￿')
const bound = fc.option(fc.record({ id, inclusive: fc.boolean() }), { nil: undefined })
const range = fc.record({ low: bound, high: bound })

describe('ranges of ids', () => {
  it('intersect to what both hold', () => {
    fc.assert(fc.property(range, range, id, (one, other, text) => {
      const both = intersect(one, other)
      expect(both !== null && rangeHolds(both, text)).to.equal(rangeHolds(one, text) && rangeHolds(other, text))
    }))
  })

  it('compare by the bytes of UTF-8, not by UTF-16 units', () => {
    expect(compareUtf8('￿', '😀')).to.be.below(0)
  })

  it('put keys that are no texts before every id', () => {
    const parse = (search: string) => requestedRange(listParameters(Query.parse(search), null))
    expect(parse('startkey=5&endkey="b"')).to.deep.equal({ high: { id: 'b', inclusive: true } })
    expect(parse('endkey=5')).to.equal(null)
    expect(parse('key=null')).to.equal(null)
    expect(parse('descending=true&startkey=5')).to.equal(null)
  })

  it('select the names of databases as a loop over all of them would', () => {
    const names = ['_users', 'a', 'b', 'b/c', 'c', 'z']
    const text = fc.constantFrom('', 'a', 'b', 'b0', 'zz')
    const parameters = fc.record({
      start: fc.option(text), end: fc.option(text), descending: fc.boolean(), inclusive: fc.boolean(),
      skip: fc.nat(3), limit: fc.nat(7),
    })
    fc.assert(fc.property(parameters, ({ start, end, descending, inclusive, skip, limit }) => {
      const query = new Query(new Map(Object.entries({
        ...(start === null ? {} : { startkey: JSON.stringify(start) }),
        ...(end === null ? {} : { endkey: JSON.stringify(end) }),
        descending: String(descending), inclusive_end: String(inclusive), skip: String(skip), limit: String(limit),
      })))
      const expected = (descending ? names.toReversed() : names).filter(name => {
        const [low, high] = descending ? [end, start] : [start, end]
        if (low !== null && (name < low || (name === low && descending && !inclusive))) return false
        return high === null || name < high || (name === high && (descending || inclusive))
      }).slice(skip, skip + limit)
      expect(selectNames(names, query)).to.deep.equal(expected)
    }))
  })
})
