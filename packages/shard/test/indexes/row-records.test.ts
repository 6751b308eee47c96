import assert from 'node:assert/strict'
import { isUtf8 } from 'node:buffer'
import fc from 'fast-check'
import { encodeViewRow } from '@sectional/core'
import { decodeRow, encodeRow } from '../../src/indexes/index-records.ts'
import { DamagedRecordError } from '../../src/records/damaged-record.ts'

const text = fc.string({ unit: 'binary', maxLength: 200 })

describe('the record of a row', () => {
  it('is UTF-8, whether or not the value is, and contains the value', () => {
    const utf8 = text.map(value => Buffer.from(value))
    const start = fc.uint8Array({ maxLength: 8 })
    const bytes = fc.oneof(
      utf8, fc.uint8Array({ maxLength: 200 }), fc.tuple(start, utf8).map(parts => Buffer.concat(parts)))
    fc.assert(fc.property(text, bytes, (place, value) => {
      const record = encodeRow(place, value)
      assert.ok(isUtf8(record))
      assert.deepEqual([...decodeRow(place, record)], [...value])
    }), { numRuns: 1000 })
  })

  it('takes two bytes more for a long key, whatever the texts are', () => {
    for (const [key, value] of [['k'.repeat(200), 'v'], ['ü'.repeat(200), '日本'.repeat(1000)]] as const) {
      const row = encodeViewRow(JSON.stringify(key), JSON.stringify(value))
      assert.ok(encodeRow('place', row).length <= row.length + 7)
    }
  })

  it('is damaged under another place, with another bit, and when it is too short', () => {
    for (const value of ['value', '\x80\x01text', 'A\xff\x80text', '\xff'.repeat(9)]) {
      checkDamage(encodeRow('place', Buffer.from(value, 'latin1')))
    }
  })

  function checkDamage(record: Uint8Array): void {
    const damaged = (place: string, bytes: Uint8Array): void => {
      assert.throws(() => decodeRow(place, bytes), DamagedRecordError)
    }
    damaged('another place', record)
    for (let bit = 0; bit < 8 * record.length; bit++) {
      const changed = Buffer.from(record)
      changed[bit >> 3]! ^= 1 << (bit & 7)
      damaged('place', changed)
      // A store that reads texts returns other bytes for those that are not UTF-8.
      damaged('place', Buffer.from(changed.toString()))
    }
    for (let length = 0; length < record.length; length++) damaged('place', record.subarray(0, length))
  }
})
