import { crc32 } from 'node:zlib'
import { expect } from 'chai'
import fc from 'fast-check'
import {
  decodeSinceToken, encodeSinceToken, shardRanges, sincePartsMax, SinceVector, type SincePart,
} from '../../src/index.ts'

const parts: SincePart[] = shardRanges(8)
  .map((range, i) => ({ range, node: `node${i % 3}@127.0.0.1`, history: `${i}a`.repeat(8), sequence: i * 1000 }))

const anyPart: fc.Arbitrary<SincePart> = fc.record({
  range: fc.tuple(fc.nat(0xffffffff), fc.nat(0xffffffff))
    .map(([a, b]) => ({ begin: Math.min(a, b), end: Math.max(a, b) })),
  node: fc.string({ maxLength: 20, unit: 'grapheme' }),
  history: fc.oneof(fc.uuid(), fc.string({ unit: 'grapheme' }), fc.constant('00ff')),
  sequence: fc.maxSafeNat().map(n => Math.floor(n / 1000)),
})

describe('since-tokens', () => {
  it('are decoded to the vector from which they were encoded, and begin with the sum', () => {
    const token = encodeSinceToken(parts)
    expect(token).to.match(/^28000-A[A-Za-z0-9_-]+$/)
    expect(decodeSinceToken(token)).to.deep.equal({ kind: 'vector', parts })
    expect(token.length).to.be.below(260)
  })

  it('can contain any ranges, also overlapping ones', () => {
    fc.assert(fc.property(fc.array(anyPart, { maxLength: 20, size: 'max' }), given => {
      const decoded = decodeSinceToken(encodeSinceToken(given))
      expect(decoded.kind === 'vector'
        && new Set(decoded.parts.map(part =>
          JSON.stringify([part.range.begin, part.range.end, part.node, part.history, part.sequence]))))
        .to.deep.equal(new Set(
          given.map(part => JSON.stringify([part.range.begin, part.range.end, part.node, part.history, part.sequence])),
        ))
    }), { numRuns: 200 })
  })

  it('do not depend on the order of the parts', () => {
    expect(encodeSinceToken(parts.toReversed())).to.equal(encodeSinceToken(parts))
  })

  it('are decoded to the current vector after each change of a place', () => {
    const places = shardRanges(4)
    const part = (place: number): fc.Arbitrary<SincePart> => fc.record({
      range: fc.constant(places[place]!), node: fc.constantFrom('', 'a', 'b'),
      history: fc.constantFrom('00ff', '11ee', 'text'), sequence: fc.nat(),
    })
    const replaced = fc.nat(3)
      .chain(place => fc.tuple(fc.constant(place), fc.array(part(place), { minLength: 1, maxLength: 3 })))
    const movedOn = fc.tuple(fc.nat(3), fc.nat(300))
    const step = fc.oneof(replaced, movedOn)
    fc.assert(fc.property(fc.array(step, { maxLength: 20, size: 'max' }), steps => {
      const vector = new SinceVector(places.length)
      const now: SincePart[][] = places.map(() => [])
      for (const [place, change] of steps) {
        const [first, ...others] = now[place]!
        const given = typeof change !== 'number' ? change
          : first === undefined ? []
          : [{ ...first, sequence: first.sequence + change }, ...others]
        vector.set(place, given)
        now[place] = given
        expect(decodeSinceToken(vector.token())).to.deep.equal({ kind: 'vector', parts: now.flat() })
      }
    }), { numRuns: 200 })
  })

  it('are decoded with and without quotes and number', () => {
    const token = encodeSinceToken(parts)
    const vector = token.slice(token.indexOf('-') + 1)
    for (const form of [`"${token}"`, vector, `"${vector}"`, token.replace(/^\d+/, '7')]) {
      expect(decodeSinceToken(form)).to.deep.equal({ kind: 'vector', parts })
    }
  })

  it('can also be the beginning or now', () => {
    for (const zero of ['0', '"0"']) expect(decodeSinceToken(zero)).to.deep.equal({ kind: 'start' })
    expect(decodeSinceToken('now')).to.deep.equal({ kind: 'now' })
    expect(decodeSinceToken('2025-07-21T16:00:00Z')).to.deep.equal({ kind: 'time', time: 1_753_113_600_000 })
    expect(decodeSinceToken('"now"').kind).to.equal('malformed')
  })

  it('are malformed when they are anything else', () => {
    for (const text of [
      '', '"', '"0', '0"', '"0x', '7', '-1', 'tomorrow', '5-', '5-g1AAAA', 'A', '1-A', '{}', 'x'.repeat(300_000),
    ]) {
      expect(decodeSinceToken(text).kind, text.slice(0, 10)).to.equal('malformed')
    }
  })

  it('hold the sequences of all places when one of them needs more bytes', () => {
    for (const [from, to] of [[127, 128], [128, 127], [16_383, 16_384], [5, 2 ** 52]] as const) {
      const vector = new SinceVector(parts.length)
      parts.forEach((part, place) => vector.set(place, [{ ...part, sequence: from }]))
      decodeSinceToken(vector.token())
      const moved = parts.map((part, place) => ({ ...part, sequence: place === 3 ? to : from }))
      vector.set(3, [moved[3]!])
      expect(decodeSinceToken(vector.token())).to.deep.equal({ kind: 'vector', parts: moved })
    }
  })

  it('have a limited number of parts', () => {
    const many = Array.from({ length: sincePartsMax + 1 }, (_, sequence) => ({ ...parts[0]!, sequence }))
    expect(decodeSinceToken(encodeSinceToken(many.slice(1))).kind).to.equal('vector')
    expect(() => encodeSinceToken(many)).to.throw(RangeError, 'at most 8192 parts')
  })

  it('are malformed when their content is not a vector, also with a correct checksum', () => {
    const reasonOf = (bytes: readonly number[]): string => {
      const sealed = Buffer.alloc(bytes.length + 4)
      sealed.set(bytes)
      sealed.writeUInt32BE(crc32(Buffer.from(bytes)), bytes.length)
      const decoded = decodeSinceToken(sealed.toString('base64url'))
      return decoded.kind === 'malformed' ? decoded.reason.replace(/.*: /, '') : decoded.kind
    }
    const nodes = [1, 1, 0x61]
    const part = [0, 32, 0, 0, 7]
    expect(reasonOf([1, ...nodes, 1, ...part])).to.equal('vector')
    expect(reasonOf([2, ...nodes, 1, ...part])).to.equal('unknown version')
    expect(reasonOf([1, ...nodes, 1, 0, 32, 1, 0, 7])).to.equal('unknown node')
    expect(reasonOf([1, ...nodes, 1, ...part, 0])).to.equal('there are bytes after the last part')
    expect(reasonOf([1, ...nodes, 0x81, 0x40])).to.equal('too many parts')
    expect(reasonOf([1, ...nodes, 1, 1, 32, 0, 0, 7])).to.equal('range outside of the ring')
    expect(reasonOf([1, ...nodes, 1, 0, 33, 0, 0, 7])).to.equal('range outside of the ring')
    expect(reasonOf([1, ...nodes, 1, 0, 64, 0, 0, 0, 7])).to.equal('range outside of the ring')
  })

  it('are malformed when a character was changed, lost or added', () => {
    const token = encodeSinceToken(parts)
    const position = fc.integer({ min: token.indexOf('A'), max: token.length - 1 })
    fc.assert(fc.property(position, fc.constantFrom('B', 'z', '_', ''), (at, letter) => {
      const broken = token.slice(0, at) + letter + token.slice(at + 1)
      const decoded = decodeSinceToken(broken)
      expect(decoded.kind === 'malformed'
        || JSON.stringify(decoded) === JSON.stringify(decodeSinceToken(token))).to.equal(true)
    }))
  })
})
