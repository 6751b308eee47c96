import { expect } from 'chai'
import {
  ApiError, compareLeaves, compareRevisions, formatRevision, parseRevision, revisionHashBytes,
} from '../../src/index.ts'

const md5 = '967a00dff5e02add41819138abb3284d'

describe('revision ids', () => {
  it('consist of a generation and a hash, which is the hex of an MD5 or any text', () => {
    expect(parseRevision(`1-${md5}`)).to.deep.equal({ generation: 1, hash: md5 })
    expect(parseRevision('12-a-b')).to.deep.equal({ generation: 12, hash: 'a-b' })
    expect(parseRevision('0-1')).to.deep.equal({ generation: 0, hash: '1' })
    expect(parseRevision('3-ö')).to.deep.equal({ generation: 3, hash: 'ö' })
    expect(parseRevision('1-')).to.deep.equal({ generation: 1, hash: '' })
    expect(formatRevision(parseRevision('007-x'))).to.equal('7-x')
  })

  it('are converted to lower case only when they denote 16 bytes', () => {
    expect(parseRevision(`1-${md5.toUpperCase()}`).hash).to.equal(md5)
    expect(parseRevision('1-ABC').hash).to.equal('ABC')
    expect(parseRevision(`1-${'G'.repeat(32)}`).hash).to.equal('G'.repeat(32))
  })

  it('are refused when malformed', () => {
    for (const text of [
      '', '7', 'nonsense', '-', '-a', 'x-abc', '1.5-a', '+1-a', ' 1-a', '99999999999999999999-a',
      `1-${'a'.repeat(1025)}`, '1-\ud800', 5, null, undefined, {},
    ]) {
      expect(() => parseRevision(text), String(text)).to.throw(ApiError).that.includes({
        status: 400, error: 'bad_request', reason: 'Invalid rev format',
      })
    }
  })

  it('are ordered by generation, then by hash bytes', () => {
    expect(compareRevisions('2-a', '10-a')).to.be.below(0)
    expect(compareRevisions(`1-${'a'.repeat(32)}`, `1-${'b'.repeat(32)}`)).to.be.below(0)
    // The byte 0x96 comes after the letter z.
    expect(compareRevisions(`1-${md5}`, '1-zz')).to.be.above(0)
    expect(compareRevisions('1-\uff5e', '1-😀')).to.be.below(0)
    expect(compareRevisions('1-a', '1-a')).to.equal(0)
    expect(revisionHashBytes(md5)).to.have.length(16)
  })

  it('denote bytes only when all characters are lower-case hex digits', () => {
    for (const digit of '09af') expect(revisionHashBytes(md5.slice(1) + digit)).to.have.length(16)
    for (const other of '/:`gAF') expect(revisionHashBytes(md5.slice(1) + other)).to.have.length(32)
  })

  it('are different when one denotes the bytes that another has as text', () => {
    const text = 'sixteen letters.'
    const hex = Buffer.from(text).toString('hex')
    expect([compareRevisions(`1-${hex}`, `1-${text}`), compareRevisions(`1-${text}`, `1-${hex}`)])
      .to.deep.equal([-1, 1])
  })

  it('make a live leaf win over any tombstone', () => {
    const leaves = [
      { revision: '9-z', deleted: true }, { revision: '1-a', deleted: false }, { revision: '2-a', deleted: false },
    ]
    expect(leaves.toSorted(compareLeaves).map(leaf => leaf.revision)).to.deep.equal(['2-a', '1-a', '9-z'])
  })
})
