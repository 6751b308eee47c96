import { expect } from 'chai'
import fc from 'fast-check'
import { parseSelector, selectorJson } from '../../src/index.ts'
import { selector } from './random-selectors.ts'

describe('the normal form of a selector', () => {
  it('is that of the recorded answers of CouchDB', () => {
    const forms: readonly (readonly [unknown, unknown])[] = [
      [{}, {}],
      [{ a: 1 }, { a: { $eq: 1 } }],
      [{ a: {} }, { a: { $eq: {} } }],
      [{ a: 1, b: 2 }, { $and: [{ a: { $eq: 1 } }, { b: { $eq: 2 } }] }],
      [{ a: { b: { c: 1 } } }, { 'a.b.c': { $eq: 1 } }],
      [{ a: { $gt: 1, $lt: 5 } }, { $and: [{ a: { $gt: 1 } }, { a: { $lt: 5 } }] }],
      [{ $and: [{ $and: [{ a: 1 }] }] }, { $and: [{ $and: [{ a: { $eq: 1 } }] }] }],
      [{ $or: [{ a: 1 }, { b: { $in: [2] } }] }, { $or: [{ a: { $eq: 1 } }, { b: { $in: [2] } }] }],
      [{ $not: { a: { $gt: 1 } } }, { a: { $lte: 1 } }],
      [{ $not: { a: { $regex: 'x' } } }, { a: { $not: { $regex: 'x' } } }],
      [{ $nor: [{ a: 1 }, { b: { $exists: true } }] }, { $and: [{ a: { $ne: 1 } }, { b: { $exists: false } }] }],
      [{ a: { $elemMatch: { b: 1 } } }, { a: { $elemMatch: { b: { $eq: 1 } } } }],
      [{ a: { $elemMatch: { $gt: 1, $lt: 3 } } }, { a: { $elemMatch: { $and: [{ $gt: 1 }, { $lt: 3 }] } } }],
      [{ a: { $allMatch: { $not: { b: 1 } } } }, { a: { $allMatch: { $not: { b: { $eq: 1 } } } } }],
      [{ a: { $allMatch: { b: { $not: { $gt: 1 } } } } }, { a: { $allMatch: { $not: { b: { $gt: 1 } } } } }],
      [{ $and: [] }, { $and: [] }], [{ a: 1, $nor: [] }, { $and: [{ a: { $eq: 1 } }, { $and: [] }] }],
      [{ a: { $or: [{ $eq: 1 }, { b: 2 }] } }, { $or: [{ a: { $eq: 1 } }, { 'a.b': { $eq: 2 } }] }],
      [{ 'x\\.y': { $mod: [2, 1] } }, { 'x\\.y': { $mod: [2, 1] } }],
      [{ '\\$price': 9 }, { '\\$price': { $eq: 9 } }], [{ a: { '\\$b': 9 } }, { 'a.$b': { $eq: 9 } }],
    ]
    for (const [written, normal] of forms) {
      expect(selectorJson(parseSelector(written)), JSON.stringify(written)).to.deep.equal(normal)
    }
  })

  it('is parsed to an equal selector', () => {
    fc.assert(fc.property(selector, written => {
      const parsed = parseSelector(written)
      expect(parseSelector(selectorJson(parsed))).to.deep.equal(parsed)
    }), { numRuns: 500 })
  })
})
