import assert from 'node:assert/strict'
import fc from 'fast-check'
import { shardCodecs } from '../../src/shard/shard-codecs.ts'
import { kindsOf, received, sent } from '../codec-kinds.ts'

describe('the codecs of shards', () => {
  for (const [name, kind] of kindsOf(shardCodecs)) {
    it(`transmit ${name} unchanged`, () => {
      fc.assert(fc.property(kind.values, each => { assert.deepEqual(received(kind, sent(kind, each)), each) }))
    })
  }
})
