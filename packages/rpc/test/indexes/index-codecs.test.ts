import assert from 'node:assert/strict'
import fc from 'fast-check'
import { indexCodecs } from '../../src/indexes/index-codecs.ts'
import { ProtocolError } from '../../src/schema/schema.ts'
import { kindsOf, received, sent, type Kind, type Sent } from '../codec-kinds.ts'

/** Returns undefined for a message that the codec refuses. Every other error fails the test. */
function receivedOrRefused(kind: Kind, message: Sent): { readonly decoded: unknown } | undefined {
  try {
    return { decoded: received(kind, message) }
  } catch (error) {
    if (error instanceof ProtocolError) return undefined
    throw error
  }
}

const changes = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 3 })

describe('the codecs of indexes', () => {
  for (const [name, kind] of kindsOf(indexCodecs)) {
    it(`transmit ${name} unchanged`, () => {
      fc.assert(fc.property(kind.values, each => { assert.deepEqual(received(kind, sent(kind, each)), each) }))
    })

    it(`refuse damaged ${name}, or read a valid one`, () => {
      const damaged = fc.tuple(kind.values, changes, fc.nat(3), fc.nat(3)).map(([each, replaced, cut, lost]): Sent => {
        const { header, payload } = sent(kind, each)
        for (const [at, byte] of replaced) header[at % header.length] = byte
        return {
          header: header.subarray(0, header.length - (cut === 3 ? 1 : 0)),
          payload: payload.subarray(0, Math.max(0, payload.length - (lost === 3 ? 1 : 0))),
        }
      })
      fc.assert(fc.property(damaged, message => {
        const found = receivedOrRefused(kind, message)
        if (found) assert.deepEqual(received(kind, sent(kind, found.decoded)), found.decoded)
      }), { numRuns: 1000 })
    })
  }
})
