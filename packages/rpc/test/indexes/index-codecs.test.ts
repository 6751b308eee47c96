import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { IndexDefinition, IndexHead, IndexRead, IndexState, RowBound, RowRange } from '@sectional/core'
import { indexCodecs } from '../../src/indexes/index-codecs.ts'
import { ProtocolError } from '../../src/schema/schema.ts'
import { bytes, count, kindsOf, received, record, sent, text, uint, type Kind, type Sent } from '../codec-kinds.ts'

const key = bytes.map(each => each.toString('latin1'))
const through = fc.oneof(count, fc.constant('newest' as const))
const optional = <T>(field: string, arbitrary: fc.Arbitrary<T>): fc.Arbitrary<Record<string, T>> =>
  fc.option(arbitrary).map(drawn => drawn === null ? {} : { [field]: drawn })

const definition: fc.Arbitrary<IndexDefinition> = record({
  kind: text, map: text, reduce: fc.option(text),
  options: fc.dictionary(text, fc.oneof(text, fc.boolean()), { maxKeys: 3, noNullPrototype: true }),
})
const state: fc.Arbitrary<IndexState> = record({
  position: record({ history: text, sequence: count }), readSequence: count, version: text, rowCount: count,
})
const head = fc.tuple(state, count).map(([each, rowsBefore]): IndexHead => ({ kind: 'head', ...each, rowsBefore }))
const bound: fc.Arbitrary<RowBound> =
  fc.tuple(key, fc.boolean(), optional('id', text)).map(([each, inclusive, id]) => ({ key: each, inclusive, ...id }))
const range: fc.Arbitrary<RowRange> =
  fc.tuple(optional('lower', bound), optional('upper', bound)).map(([lower, upper]) => ({ ...lower, ...upper }))
const place = record({ key, id: text, number: uint })
const group = record({ group: key })

/** A read that may continue at a place in one of its ranges. */
function readWith<Place extends object>(
  within: fc.Arbitrary<Place>,
): fc.Arbitrary<IndexRead<Place & { readonly range: number }>> {
  const fixed = record({ index: text, through, ranges: fc.array(range, { maxLength: 3 }), descending: fc.boolean() })
  const skip = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })
  return fc.tuple(fixed, optional('skip', skip), optional('limit', uint), fc.option(within), uint)
    .map(([read, skipped, limited, after, at]) => ({
      ...read, ...skipped, ...limited,
      ...(after !== null && read.ranges.length > 0 && { after: { ...after, range: at % read.ranges.length } }),
    }))
}

const verbs = {
  buildIndex: {
    request: record({ definition, through, waitMs: fc.double({ min: 0, noNaN: true }) }),
    reply: fc.tuple(state, count).map(([each, reached]) => ({ ...each, through: reached })),
  },
  scanIndex: {
    request: readWith(place),
    rows: fc.oneof(head, record({ kind: fc.constant('row'), range: uint, key, id: text, number: uint, value: bytes })),
  },
  reduceIndex: {
    request: fc.tuple(
      readWith(group), fc.oneof(uint, fc.constant('exact')),
    ).map(([read, groupLevel]) => ({ ...read, groupLevel })),
    rows: fc.oneof(head, record({ kind: fc.constant('group'), range: uint, group: key, value: bytes })),
  },
  indexInfo: {
    request: text,
    reply: fc.tuple(state, record({
      definition, building: fc.boolean(), waiting: count, failedCount: count,
      failures: fc.array(record({ id: text, error: text }), { maxLength: 2 }),
      sizes: record({ file: count, active: count, external: count }),
    })).map(([each, rest]) => ({ ...each, ...rest })),
  },
  dropIndexes: { request: record({ except: fc.array(text, { maxLength: 3 }) }) },
}

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
  for (const [name, kind] of kindsOf<keyof typeof verbs>(indexCodecs, verbs)) {
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
