import assert from 'node:assert/strict'
import fc from 'fast-check'
import { BodyPieces } from '../../src/http/body-pieces.ts'

describe('the pieces of a body', () => {
  it('are few, however short those are that arrive', () => {
    const pieces = new BodyPieces()
    const body = Buffer.alloc(100_000, 'abc')
    for (let at = 0; at < body.length; at++) pieces.add(body.subarray(at, at + 1))
    assert(pieces.count <= 256 + 100_000 / 256, `${pieces.count} pieces`)
    assert.deepEqual(pieces.bytes(), body)
  })

  it('are the body in their order, short and long ones', () => {
    const length = fc.oneof({ weight: 20, arbitrary: fc.nat(3) }, fc.nat(5000))
    const lengths = fc.array(length, { maxLength: 1500, size: 'max' })
    fc.assert(fc.property(lengths, given => {
      const pieces = new BodyPieces()
      const sent = given.map((length, at) => Buffer.alloc(length, String(at)))
      for (const piece of sent) pieces.add(piece)
      assert.deepEqual(pieces.bytes(), Buffer.concat(sent))
    }), { numRuns: 20 })
  })

  it('are copied only when they are short', () => {
    const long = Buffer.alloc(64 * 1024)
    const pieces = new BodyPieces()
    for (let count = 0; count < 300; count++) pieces.add(long)
    assert.equal(pieces.count, 300)
    pieces.clear()
    pieces.add(long)
    assert.equal(pieces.bytes(), long)
  })
})
