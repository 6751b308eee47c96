import { expect } from 'chai'
import fc from 'fast-check'
import { compileSelector, matchesSelector, parseSelector } from '../../src/index.ts'
import { document, selector } from './random-selectors.ts'

describe('a compiled selector', () => {
  it('matches the documents that its definition matches, one after the other', () => {
    fc.assert(fc.property(selector, fc.array(document, { minLength: 1, maxLength: 5 }), (written, documents) => {
      const parsed = parseSelector(written)
      const matches = compileSelector(parsed)
      for (const each of documents) {
        expect(matches(each), JSON.stringify(each)).to.equal(matchesSelector(parsed, each))
      }
    }), { numRuns: 5000 })
  })

  it('compares texts in root collation, and ids by their bytes', () => {
    const matches = (written: unknown, members: object): boolean =>
      compileSelector(parseSelector(written))({ _id: 'b', ...members })
    expect(matches({ a: 'e\u0301' }, { a: 'é' })).to.equal(true)
    expect(matches({ a: { $in: ['e\u0301', 'x'] } }, { a: 'é' })).to.equal(true)
    expect(matches({ a: { $in: ['b\u0000', 'x'] } }, { a: 'b' })).to.equal(true)
    expect(matches({ a: { $in: ['b', 'x'] } }, { a: ['c', 'b\u0000'] })).to.equal(true)
    expect(matches({ a: { $ne: 'é' } }, { a: 'e\u0301' })).to.equal(false)
    expect(matches({ a: { $gt: 'a', $lt: 'B' } }, { a: 'b' })).to.equal(true)
    expect(matches({ a: { $gt: ['A'] } }, { a: ['a'] })).to.equal(false)
    expect(matches({ _id: { $gt: 'B' } }, {})).to.equal(true)
    for (const value of [null, true, 1, [], {}]) {
      expect(matches({ _id: { $gt: value } }, {}), JSON.stringify(value)).to.equal(true)
      expect(matches({ _id: { $lte: value } }, {}), JSON.stringify(value)).to.equal(false)
    }
    expect(matches({ _id: 'e\u0301' }, { _id: 'é' })).to.equal(false)
  })

  it('finds no members that a document only inherits', () => {
    const empty = JSON.parse('{"_id":"a","list":[],"own":{"__proto__":1}}') as Record<string, unknown>
    const found = ['constructor', 'toString', '__proto__', 'list.length', 'list.constructor', 'own.toString', 'own.0']
      .filter(name => compileSelector(parseSelector({ [name]: { $ne: 0 } }))(empty))
    expect(found).to.deep.equal([])
    expect(compileSelector(parseSelector(JSON.parse('{"own.__proto__":1}')))(empty)).to.equal(true)
  })
})
