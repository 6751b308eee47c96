import { expect } from 'chai'
import fc from 'fast-check'
import { parseDocument, revisionHash } from '../../src/index.ts'
import { naiveRevisionHash } from './naive-revision-hash.ts'

function first(body: string): string {
  return revisionHash({ deleted: false, parent: null, body: Buffer.from(body) })
}

describe('revision hash', () => {
  it("equals CouchDB's for known documents", () => {
    expect(first('{}')).to.equal('967a00dff5e02add41819138abb3284d')
    expect(first('{"a":1}')).to.equal('23202479633c2b380f79507a776743d5')
    const parent = '1-967a00dff5e02add41819138abb3284d'
    expect(revisionHash({ deleted: true, parent, body: Buffer.from('{}') })).to.equal(
      'eec205a9d413992850a6e32678485900',
    )
  })

  // Computed by an independent encoder, written in Python from the rules of Erlang's external term format.
  const vectors: readonly (readonly [body: string, hash: string])[] = [
    ['{"a":1.0}', '8a159b695bf2bd957f1a435bfd6e1739'],
    ['{"list":[1,2,3],"mixed":[1,256],"empty":[],"nested":[[0,255],[-1]]}', '7f2f2515d51d5abcedf6aea91b75ac78'],
    [
      '{"i":[255,256,-1,2147483647,2147483648,-2147483648,-2147483649,9007199254740993,'
        + '123456789012345678901234567890,-18446744073709551616]}',
      '3fe977e5390fcc11ebe9ccfefc8fe568',
    ],
    [
      '{"f":[0.5,-12.25,1e3,1.5E-7,0.1,123456.789,-0.0,0.3333333333333333,1.7976931348623157e308,5e-324]}',
      '08fedbdc8ee17c208539e2507e780efc',
    ],
    [
      '{"s":"é😀\\u00e9\\n\\"\\\\\\/\\ud83d\\ude00","":{},"t":true,"f":false,"n":null}',
      'd562240647dd02f9ff70efd5e502647a',
    ],
    ['{"b":1,"1":2,"0":{"z":[{}]}}', 'f4673991f2119ec28a870985e1b26889'],
    [`{"l":[${Array.from({ length: 65_535 }, () => 7).join()}]}`, '636cba8648d1eeb9f27110997a7da45c'],
    [`{"l":[${Array.from({ length: 65_536 }, () => 7).join()}]}`, 'cbbc992f107a7ee70c0acd3487d6f024'],
    [`{"n":1${'0'.repeat(700)}}`, 'ee6f7561a76094f750a498c3c4ce6251'],
    [`{"${'x'.repeat(100)}":"${'ü'.repeat(100)}"}`, 'bca78feba69c0226f992f57061f4a619'],
  ]
  for (const [body, hash] of vectors) {
    it(`follows the encoding rules for ${body.slice(0, 60)}`, () => {
      expect(first(body)).to.equal(hash)
      expect(first(body.replaceAll(',', ' , ').replaceAll(':', '\t:\r\n'))).to.equal(hash)
    })
  }

  it('covers the parent, whose hash may be any text, and the attachments', () => {
    expect(revisionHash({ deleted: false, parent: '3-abc', body: Buffer.from('{"a":1}') })).to.equal(
      '56fcc5894494f11b82e86053f06f7e8e',
    )
    const attachments = [
      { name: 'a', type: 'x/y', md5: Buffer.alloc(16) },
      { name: 'b.txt', type: 'text/plain', md5: Buffer.from(Array.from({ length: 16 }, (_, i) => i)) },
    ]
    expect(revisionHash({ deleted: false, parent: null, body: Buffer.from('{}'), attachments })).to.equal(
      '1563a9dde4db8f7801d1aeb8bc0a7fb2',
    )
  })

  it('differs for an integer and a float, and for different large integers', () => {
    const bodies = [
      '{"a":1}', '{"a":1.0}', '{"a":9007199254740992}', '{"a":9007199254740993}', `{"a":${'9'.repeat(20_000)}}`,
      `{"a":${'8'.repeat(20_000)}}`,
    ]
    expect(new Set(bodies.map(first)).size).to.equal(bodies.length)
    expect(first('{"a":1000.0}')).to.equal(first('{"a":1e3}'))
  })

  it('equals the hash of a naive encoder over values', () => {
    fc.assert(fc.property(fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue()), value => {
      const { body } = parseDocument(
        JSON.stringify(Object.fromEntries(Object.entries(value).filter(([name]) => !name.startsWith('_')))),
      )
      expect(revisionHash({ deleted: false, parent: null, body })).to.equal(
        naiveRevisionHash(JSON.parse(body.toString())),
      )
    }), { numRuns: 300 })
  })

  it('equals the hash of a naive encoder however large the parts are', () => {
    const parts: readonly unknown[] = [
      'x'.repeat(1_500_000), '\n'.repeat(1_200_000), Array(9000).fill(true), Array(9000).fill(-1.5),
      Array(9000).fill(2 ** 40), Array(9000).fill({}), Array(9000).fill([]), Array(9000).fill(300),
    ]
    for (const part of parts) {
      const attachments = Array.from({ length: typeof part === 'string' ? 100 : 1 }, (_, at) => (
        { name: `${at}`.repeat(at), type: 'x/y', md5: Buffer.alloc(16, at) }))
      // A short hash first, so that the buffer is a small one again.
      first('{}')
      const body = Buffer.from(JSON.stringify({ part }))
      expect(revisionHash({ deleted: false, parent: null, body, attachments }))
        .to.equal(naiveRevisionHash({ part }, attachments))
    }
  })

  it('refuses a body that is not valid JSON', () => {
    for (const body of ['', '{', '{"a"}', '[1 2]', '{"a":1}x', '"abc', '"a\\"', '{"a":}', '{"a":1 "b":2}']) {
      expect(() => first(body), body).to.throw(RangeError)
    }
  })
})
