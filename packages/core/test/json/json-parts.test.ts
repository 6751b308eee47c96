import assert from 'node:assert/strict'
import fc from 'fast-check'
import { jsonParts } from '../../src/json/json-parts.ts'

/** Returns name and text of each part. */
function partsOf(text: string, partsMax = 100): readonly (readonly [name: string, text: string])[] | null {
  const work = jsonParts(Buffer.from(text), partsMax)
  for (;;) {
    const { done, value } = work.next()
    if (done === true) return value && value.map(part => [part.name, Buffer.from(part.text).toString()])
  }
}

describe('the parts of JSON', () => {
  it('are the members of an object and the elements of an array', () => {
    assert.deepEqual(partsOf('{"a":1,"b\\u00e9":{"c":[]},"":"]}"}'), [['a', '1'], ['bé', '{"c":[]}'], ['', '"]}"']])
    assert.deepEqual(partsOf('[null,[1,2],"\\"",{}]'), [['', 'null'], ['', '[1,2]'], ['', '"\\""'], ['', '{}']])
    assert.deepEqual([partsOf('{}'), partsOf('[]')], [[], []])
    assert.deepEqual([partsOf('1'), partsOf('"[]"'), partsOf('')], [null, null, null])
  })

  it('are the values that JSON.parse finds', () => {
    fc.assert(fc.property(fc.oneof(fc.array(fc.jsonValue()), fc.dictionary(fc.string(), fc.jsonValue())), value => {
      const text = JSON.stringify(value)
      fc.pre(text.isWellFormed() && !/\\ud[89a-f]/.test(text))
      const parsed = partsOf(text)!.map(([name, part]): [string, unknown] => [name, JSON.parse(part)])
      const names = Array.isArray(value) ? value.map(() => '') : Object.keys(value)
      assert.deepEqual(parsed, names.map((name, at) => [name, Object.values(JSON.parse(text))[at]]))
    }))
  })

  it('are refused when there are too many, or when the text is no JSON', () => {
    assert.equal(partsOf('[1,2]', 2)?.length, 2)
    assert.throws(() => partsOf('[1,2,3]', 2), { error: 'too_large' })
    for (const text of ['[1,2', '[1]x', '{"a":}', '{"a"', '[', '{', '[1 2]', '["\\ud800"]']) {
      assert.throws(() => partsOf(text), { reason: 'invalid UTF-8 JSON' }, text)
    }
    assert.throws(() => partsOf('['.repeat(1001) + ']'.repeat(1001)), { error: 'bad_request' })
  })
})
