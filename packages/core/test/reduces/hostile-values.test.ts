import { expect } from 'chai'
import { builtInReduce } from '@sectional/core'
import fc from 'fast-check'
import { combined, reductionOf, rowOf } from './reduce-rows.ts'

const names = ['_sum', '_stats', '_count', '_first', '_last', '_top_100', '_bottom_1', '_approx_count_distinct']
/** Most bytes of any state. */
const stateBytesMax = 300 * 1024

function nested(open: string, depth: number, close: string): string {
  return `${open.repeat(depth)}1${close.repeat(depth)}`
}

const hostile: Readonly<Record<string, string>> = {
  'a deep array': nested('[', 1_000_000, ']'),
  'a deep array that is short': nested('[', 30_000, ']'),
  'a deep object': nested('{"a":', 500_000, '}'),
  'a deep object that is short': nested('{"a":', 10_000, '}'),
  'a deep object within the limit': nested('{"a":', 999, '}'),
  'a huge array': `[${'1,'.repeat(3_000_000)}1]`,
  'an array of as many numbers as are parsed': `[${'1,'.repeat(32_000)}1]`,
  'many members': `{${Array.from({ length: 6000 }, (_, i) => `"${i}":1`).join(',')}}`,
  'a long name': `{"${'n'.repeat(65_000)}":1}`,
  'a huge string': `"${'x'.repeat(8_000_000)}"`,
  'a string of marks': `"${'\u0f71'.repeat(2500)}"`,
  'a lone surrogate': '"\\ud800"',
  'a lone surrogate in a name': '{"\\ud800":1}',
  'a number of many digits': '1'.repeat(10_000_000),
  'a number beyond the range of doubles': '1e400',
  'an array of such a number': '[1e400]',
  'statistics of such a number': '{"sum":1e400,"count":1,"min":-1e400,"max":1e400,"sumsqr":1e400}',
  'NaN': 'NaN',
  'nothing': '',
  'broken JSON': '{"a":',
  'the greatest double': '1.7976931348623157e308',
}

describe('hostile values', () => {
  for (const [kind, json] of Object.entries(hostile)) {
    it(`${kind}: every function has a small state and a small result or error`, () => {
      const row = rowOf(json)
      for (const name of names) {
        const started = process.cpuUsage()
        const reduction = reductionOf(name, [rowOf('1'), ...Array<typeof row>(20).fill(row)])
        const state = reduction.encode()
        expect(state.length, name).to.be.below(stateBytesMax)
        const outcome = (from: typeof reduction): string => {
          try {
            return from.result()
          } catch (error) {
            expect(error).to.include({ error: 'invalid_value' })
            return (error as Error).message
          }
        }
        expect(outcome(reduction).length, name).to.be.below(stateBytesMax)
        expect(outcome(combined(name, [state, state])).length, name).to.be.below(stateBytesMax)
        const { user, system } = process.cpuUsage(started)
        expect((user + system) / 1000, `${name}: milliseconds of CPU`).to.be.below(1000)
      }
    })
  }

  it('a sum of objects with ever new names stops growing', () => {
    const rows = Array.from({ length: 20_000 }, (_, i) => rowOf(`{"name-${i}":1}`))
    const reduction = reductionOf('_sum', rows)
    expect(reduction.result()).to.match(/^\{"error":"builtin_reduce_error","reason":"Reduce output must shrink more/)
    expect(reduction.encode().length).to.be.below(1000)
    expect(reductionOf('_sum', rows.slice(0, 2700)).encode().length).to.be.below(stateBytesMax)
  })

  it('a failure quotes only the beginning of a long value', () => {
    const { caused_by: quoted } = JSON.parse(reductionOf('_sum', [rowOf(`["${'x'.repeat(5000)}"]`)]).result()) as
      { readonly caused_by: string }
    expect(quoted).to.match(/^\["x+\.\.\.$/).and.have.lengthOf(1027)
  })

  it('bytes that are not a state are refused or ignored, and never crash', () => {
    fc.assert(fc.property(fc.constantFrom(...names), fc.uint8Array({ maxLength: 200 }), (name, bytes) => {
      const reduction = builtInReduce(name)!.start()
      reduction.addRow(rowOf('1'))
      try {
        reduction.addState(bytes)
      } catch (error) {
        expect(error).to.be.instanceOf(RangeError)
      }
    }), { numRuns: 3000 })
  })
})
