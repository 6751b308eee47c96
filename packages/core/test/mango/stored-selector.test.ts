import fc from 'fast-check'
import { expect } from 'chai'
import {
  matchesSelector, parseSelector, selectorDocument, selectorPaths, StoredSelector, type JsonObject,
} from '../../src/index.ts'
import { document, selector } from '../selectors/random-selectors.ts'

const testInTime = (pattern: RegExp, text: string): boolean => pattern.test(text)

function stored({ _id, ...members }: JsonObject) {
  return { id: _id as string, revision: '1-a', body: Buffer.from(JSON.stringify(members)) }
}

describe('a selector of stored documents', () => {
  it('matches the documents that it matches when they are parsed', () => {
    const parts = fc.tuple(selector, fc.array(document, { minLength: 1, maxLength: 5 }))
    fc.assert(fc.property(parts, ([json, documents]) => {
      const parsed = parseSelector(json)
      const ofStored = new StoredSelector(parsed, testInTime)
      for (const each of documents) {
        const whole = selectorDocument(stored(each))
        const expected = matchesSelector(parsed, whole)
        expect(ofStored.matches(stored(each))).to.equal(expected)
        expect(ofStored.matchesMembers(whole)).to.equal(expected)
      }
    }), { numRuns: 3000 })
  })

  it('may have more fields than are searched for one by one', () => {
    const members = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`field${at}`, at]))
    const all = new StoredSelector(parseSelector(members), testInTime)
    expect(all.matches(stored({ _id: 'a', ...members }))).to.equal(true)
    expect(all.matches(stored({ _id: 'a', ...members, field99: 0 }))).to.equal(false)
  })

  it('sees the id, the revision, stubs of attachments, and conflicts', () => {
    const attachment = {
      name: 'a.txt', contentType: 'text/plain', revpos: 2, digest: 'abc', blob: '00', length: 5, encoding: 'identity',
      storedLength: 5,
    } as const
    const leaves = [
      { revision: '2-b', deleted: false }, { revision: '2-a', deleted: false }, { revision: '1-x', deleted: true },
    ]
    const whole = { ...stored({ _id: 'x', n: 1 }), revision: '2-b', attachments: [attachment], leaves }
    const matches = (json: JsonObject, of: Parameters<StoredSelector['matches']>[0] = whole): boolean =>
      new StoredSelector(parseSelector(json), testInTime).matches(of)
    expect(matches({ _id: 'x', _rev: '2-b', n: 1 })).to.equal(true)
    expect(matches({ _conflicts: ['2-a'] })).to.equal(true)
    expect(matches({ '_attachments.a\\.txt': {
      $eq: { content_type: 'text/plain', revpos: 2, digest: 'md5-abc', length: 5, stub: true },
    } })).to.equal(true)
    const { leaves: _leaves, attachments: _attachments, ...plain } = whole
    expect(matches({ _conflicts: { $exists: true } }, plain)).to.equal(false)
    expect(matches({ _attachments: { $exists: true } }, plain)).to.equal(false)
    expect(matches({ _conflicts: { $exists: true } }, { ...plain, leaves: leaves.slice(0, 1) })).to.equal(false)
  })

  it('does not read on behind a condition that fails', () => {
    const broken = { id: 'a', revision: '1-a', body: Buffer.from('{"n":1,"t":"x","list":[1,') }
    const of = (json: JsonObject) => new StoredSelector(parseSelector({ ...json, list: { $size: 2 } }), testInTime)
    expect(of({ n: 2 }).matches(broken)).to.equal(false)
    expect(of({ $and: [{ n: 1 }, { t: { $gt: 'y' } }] }).matches(broken)).to.equal(false)
    expect(() => of({ n: 1 }).matches(broken)).to.throw(SyntaxError)
  })

  it('names its paths', () => {
    const parsed = parseSelector({ 'a.b': 1, $or: [{ c: { d: 2 } }, { $nor: [{ e: { $elemMatch: { f: 1 } } }] }] })
    expect(selectorPaths(parsed)).to.deep.equal([['a', 'b'], ['c', 'd'], ['e']])
  })
})
