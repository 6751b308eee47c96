import assert from 'node:assert/strict'
import { decodeViewRow, SortKeyEncoder } from '@sectional/core'
import { mappedDocument } from '../../../src/indexes/javascript/mapped-document.ts'
import type { MappedDocument } from '../../../src/indexes/indexer.ts'
import { viewOf } from './javascript-world.ts'

const encoder = new SortKeyEncoder('root')

/** Returns the rows of a document that emitted these keys and values, and how often making them paused. */
function mapped(...rows: readonly (readonly [key: string, value: string])[]): {
  readonly result: MappedDocument
  readonly pauses: number
} {
  const outcome = { kind: 'rows', rows: rows.map(([key, value]) => ({ key, value })) } as const
  const work = mappedDocument(viewOf('doc => {}'), 'd', outcome, encoder)
  for (let pauses = 0; ; pauses++) {
    const step = work.next()
    if (step.done === true) return { result: step.value, pauses }
  }
}

const nested = (levels: number): string => `${'['.repeat(levels)}"${'x'.repeat(70_000)}"${']'.repeat(levels)}`

describe('rows with long keys and values', () => {
  const list = `[${'{},'.repeat(500_000)}1]`

  it('are checked in slices', () => {
    const { result, pauses } = mapped(['1', list], ['2', '2'])
    assert.equal('rows' in result && decodeViewRow(result.rows[0]!.value).value, list)
    assert.ok(pauses > 20, `${pauses} pauses`)
  })

  it('have the order of short ones', () => {
    const long = (first: number): string => `[${first},"${'x'.repeat(100_000)}"]`
    const keys = (...rows: readonly (readonly [string, string])[]): readonly string[] => {
      const { result } = mapped(...rows)
      return 'rows' in result ? result.rows.map(({ value }) => Object.values(decodeViewRow(value)).join()) : []
    }
    assert.deepEqual(keys([long(10), '1'], ['[3]', '2'], [long(2), '3']),
      [`${long(2)},3`, '[3],2', `${long(10)},1`])
    assert.deepEqual(keys(['1', long(10)], ['1', '[3]'], ['1', long(2)]),
      [`1,${long(2)}`, '1,[3]', `1,${long(10)}`])
  })

  it('are refused when they cannot be read', () => {
    const failing = {
      'key of 5 MB': [`["${'x'.repeat(5_000_000)}"]`, '1', /the JSON of the key has 5000004 characters; the limit is/],
      'key with many values': [`[${'{},'.repeat(1_200_000)}1]`, '1', /key/],
      'deep key': [nested(1001), '1', /nested/],
      'deep value': ['1', nested(1001), /nested/],
      'key with more text behind it': [`${list}]`, '1', /text follows/],
      'value with more text behind it': ['1', `${list}]`, /text follows/],
    } as const
    for (const [name, [key, value, error]] of Object.entries(failing)) {
      const { result } = mapped([key, value])
      assert.match('error' in result ? String(result.error) : 'rows', error, name)
    }
    assert.ok('rows' in mapped([nested(900), nested(1000)]).result)
  })
})
