import { expect } from 'chai'
import { spliceDocument } from '../../src/index.ts'

function spliced(id: string, body: string, extra?: string): string {
  return spliceDocument({ id, revision: '1-abc', body: Buffer.from(body), extra }).toString()
}

describe('splicing a document', () => {
  it('puts id and revision before the body, and extra members after it', () => {
    expect(spliced('doc', '{"a":1.0,"b":{}}')).to.equal('{"_id":"doc","_rev":"1-abc","a":1.0,"b":{}}')
    expect(spliced('doc', '{"a":1}', '"_deleted":true,"_conflicts":["1-a"]')).to.equal(
      '{"_id":"doc","_rev":"1-abc","a":1,"_deleted":true,"_conflicts":["1-a"]}',
    )
    expect(spliced('doc', '{}')).to.equal('{"_id":"doc","_rev":"1-abc"}')
    expect(spliced('doc', '{}', '"_deleted":true')).to.equal('{"_id":"doc","_rev":"1-abc","_deleted":true}')
  })

  it('accepts ids and members of every script', () => {
    expect(JSON.parse(spliced('"é😀\u0001', '{"ü":"你好"}', '"_x":"ж"'))).to.deep.equal({
      _id: '"é😀\u0001', _rev: '1-abc', ü: '你好', _x: 'ж',
    })
  })

  it('refuses a body that is not an object', () => {
    for (const body of ['', '[]', '{', '1']) expect(() => spliced('doc', body)).to.throw(RangeError)
  })
})
