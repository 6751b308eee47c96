import { expect } from 'chai'
import fc from 'fast-check'
import { compareUtf8, ReplicaError } from '@sectional/core'
import type { Range } from '@sectional/runtime'
import { prefixMax, ShardKeys } from '../../src/records/key-layout.ts'
import type { KeyKind } from '../../src/records/key-layout.ts'

const id = fc.string({ unit: 'binary', maxLength: 8 }).map(text => text.toWellFormed())
const prefix = fc.constantFrom(1, 2, 127, 128, 255, 256, 65_535, 65_536, prefixMax - 1, prefixMax)
const sequence = fc.oneof(fc.integer({ min: 1, max: 3 }), fc.maxSafeInteger().map(Math.abs))
const kinds: readonly KeyKind[] = ['m', 'i', 's', 'b', 'l', 'c']

function within(key: string, range: Range): boolean {
  return compareUtf8(key, range.gte) >= 0 && compareUtf8(key, range.lt) < 0
}

describe('key layout', () => {
  it('orders documents by the UTF-8 bytes of their ids and gives the ids back', () => {
    fc.assert(fc.property(prefix, id, id, (prefix, left, right) => {
      const keys = new ShardKeys(prefix)
      expect(Math.sign(compareUtf8(keys.document(left), keys.document(right)))).to.equal(
        Math.sign(Buffer.compare(Buffer.from(left), Buffer.from(right))),
      )
      expect(ShardKeys.text(keys.document(left))).to.equal(left)
    }))
  })

  it('orders changes by number up to 2^53 and gives the numbers back', () => {
    fc.assert(fc.property(prefix, sequence, sequence, (prefix, left, right) => {
      const keys = new ShardKeys(prefix)
      expect(Math.sign(compareUtf8(keys.change(left), keys.change(right)))).to.equal(Math.sign(left - right))
      expect(ShardKeys.sequence(keys.change(left))).to.equal(left)
      expect(within(keys.change(right), keys.changesAfter(left))).to.equal(right > left)
    }))
  })

  it('keeps every key within its kind and its shard, whatever the id', () => {
    fc.assert(fc.property(prefix, prefix, id, sequence, fc.nat(65_535), (prefix, other, id, sequence, chunk) => {
      const keys = new ShardKeys(prefix)
      const made: [KeyKind, string][] = [
        ['m', keys.state()], ['i', keys.document(id)], ['s', keys.change(sequence)], ['b', keys.body(sequence, chunk)],
        ['l', keys.localDocument(id)], ['c', keys.checkpoint(id)],
      ]
      for (const [kind, key] of made) {
        for (const each of kinds) expect(within(key, keys.kind(each))).to.equal(each === kind)
        expect(within(key, new ShardKeys(other).all())).to.equal(other === prefix)
      }
    }))
  })

  it('bounds a range of ids at both ends, inclusive or not', () => {
    fc.assert(fc.property(id, id, id, fc.boolean(), fc.boolean(), (low, high, at, fromLow, toHigh) => {
      const keys = new ShardKeys(7)
      const range = keys.ids('i', { id: low, inclusive: fromLow }, { id: high, inclusive: toHigh })
      const above = Buffer.compare(Buffer.from(at), Buffer.from(low))
      const below = Buffer.compare(Buffer.from(high), Buffer.from(at))
      expect(within(keys.document(at), range)).to.equal(
        (above > 0 || (above === 0 && fromLow)) && (below > 0 || (below === 0 && toHigh)),
      )
    }))
  })

  it('puts the chunks of a body behind its first record and before the next body', () => {
    const keys = new ShardKeys(1)
    const order = [keys.body(5), keys.body(5, 1), keys.body(5, 256), keys.body(6)]
    expect(order.toSorted(compareUtf8)).to.deep.equal(order)
    expect(order.map(key => ShardKeys.bodyChunk(key))).to.deep.equal([0, 1, 256, 0])
  })

  it('refuses an id that UTF-8 cannot hold', () => {
    expect(() => new ShardKeys(1).document('a\ud800')).to.throw(ReplicaError, 'not valid Unicode text')
  })
})
