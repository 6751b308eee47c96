import { expect } from 'chai'
import { decodeText, encodeSegment, splitPath, splitTarget } from '../../src/request/request-path.ts'

describe('request paths', () => {
  it('splits on slashes before decoding, so that %2F stays in its segment', () => {
    expect(splitPath('/a%2Fb/c', true)).to.deep.equal(['a/b', 'c'])
  })

  it('ignores doubled and trailing slashes', () => {
    expect(splitPath('//db///doc/', true)).to.deep.equal(['db', 'doc'])
    expect(splitPath('/', true)).to.deep.equal([])
  })

  it('reads + as a blank only where the setting says so', () => {
    expect(splitPath('/a+b/c%2Bd', true)).to.deep.equal(['a b', 'c+d'])
    expect(splitPath('/a+b', false)).to.deep.equal(['a+b'])
  })

  it('refuses escapes that cannot be decoded', () => {
    for (const path of ['%', 'a%2', '%zz']) expect(() => decodeText(path, true)).to.throw('invalid_url_encoding')
    expect(() => decodeText('%ff', true)).to.throw('Document id must be valid UTF-8')
  })

  it('separates the query, also of absolute targets', () => {
    expect(splitTarget('/a/b?x=1?y')).to.deep.equal({ path: '/a/b', search: 'x=1?y' })
    expect(splitTarget('http://host:1/a?x')).to.deep.equal({ path: '/a', search: 'x' })
    expect(splitTarget('*')).to.deep.equal({ path: '/', search: '' })
  })

  it('encodes segments for Location as CouchDB does', () => {
    expect(encodeSegment("a/b:c'd e(é)")).to.equal('a%2Fb:c%27d%20e%28%C3%A9%29')
  })
})
