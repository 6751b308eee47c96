import assert from 'node:assert/strict'
import fc from 'fast-check'
import { controlCodecs } from '../../src/control/control-codecs.ts'
import { kindsOf, received, sent } from '../codec-kinds.ts'

describe('the codecs of the control plane', () => {
  for (const [name, kind] of kindsOf(controlCodecs)) {
    it(`transmit ${name} unchanged`, () => {
      fc.assert(fc.property(kind.values, each => { assert.deepEqual(received(kind, sent(kind, each)), each) }))
    })
  }
})
