import assert from 'node:assert/strict'
import {
  decodeReduced, decodeViewGroup, decodeViewRow, encodeReducedJson, encodeReduceFailure, encodeViewGroup, encodeViewRow,
  viewRowValue,
} from '../../src/index.ts'

describe('the encoding of rows and groups of views', () => {
  const texts = ['null', '""', '0', '"ä€😀"', '[1,{"a":"\\ud800"}]', `"${'x'.repeat(127)}"`, `"${'ü'.repeat(9000)}"`]

  it('preserves the JSON texts of keys and values', () => {
    for (const key of texts) {
      for (const value of texts) {
        const row = encodeViewRow(key, value)
        assert.deepEqual(decodeViewRow(row), { key, value })
        assert.equal(Buffer.from(viewRowValue(row)).toString(), value)
      }
    }
  })

  it('needs one byte more than the texts of a short row', () => {
    assert.deepEqual(Buffer.from(encodeViewRow('"k"', '1')), Buffer.from([3, 0x22, 0x6b, 0x22, 0x31]))
  })

  it('distinguishes groups without a key from groups with the key null', () => {
    const allBytes = Uint8Array.from({ length: 256 }, (_, at) => at)
    for (const key of [null, ...texts]) {
      for (const state of [new Uint8Array(0), Uint8Array.of(0), allBytes]) {
        const group = decodeViewGroup(encodeViewGroup(key, state))
        assert.equal(group.key, key)
        assert.deepEqual([...group.state], [...state])
      }
    }
  })

  it('distinguishes reduced values from failures', () => {
    for (const json of texts) assert.deepEqual(decodeReduced(encodeReducedJson(json)), { json })
    for (const failure of [{ error: 'timeout', reason: '' }, { error: '', reason: 'ä'.repeat(200) }]) {
      assert.deepEqual(decodeReduced(encodeReduceFailure(failure)), { failure })
    }
  })

  it('refuses bytes that end too early', () => {
    const row = encodeViewRow('"key"', '1')
    assert.throws(() => decodeViewRow(row.subarray(0, 4)), RangeError)
    assert.throws(() => viewRowValue(row.subarray(0, 4)), RangeError)
    assert.throws(() => decodeViewGroup(row.subarray(0, 4)), RangeError)
    assert.throws(() => decodeReduced(new Uint8Array(0)), RangeError)
    assert.throws(() => decodeReduced(encodeReduceFailure({ error: 'timeout', reason: '' }).subarray(0, 5)), RangeError)
  })
})
