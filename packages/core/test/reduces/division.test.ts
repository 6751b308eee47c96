import { expect } from 'chai'
import fc from 'fast-check'
import type { ReducedRow } from '@sectional/core'
import { combined, reductionOf, rowOf } from './reduce-rows.ts'

const number = fc.oneof(
  fc.integer({ min: -100, max: 100 }), fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e150, max: 1e150 }),
  fc.maxSafeInteger(),
)
const statistics = fc.record({ sum: number, count: fc.nat(), min: number, max: number, sumsqr: number })
const sumObject = fc.letrec(tie => ({
  object: fc.dictionary(
    fc.constantFrom('a', 'b', '1', '__proto__', 'ü'), fc.oneof({ maxDepth: 3 }, number, tie('object')),
    { maxKeys: 4 }),
})).object.map(object => JSON.parse(JSON.stringify(object)) as unknown)
const anyValue = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }), fc.constantFrom('a', 'A', 'á', 'a\u0301', '', 0, 1, 50, 50, null),
)

/** For each kind, values that the reduce functions accept together, except that some sums of objects fail. */
const kinds: Readonly<Record<string, { readonly names: readonly string[]; readonly value: fc.Arbitrary<unknown> }>> = {
  'numbers': { names: ['_sum', '_stats', '_top_3', '_bottom_3'], value: number },
  'numbers and arrays of several lengths': {
    names: ['_sum'], value: fc.oneof(number, fc.array(number, { maxLength: 4 })),
  },
  'objects': { names: ['_sum'], value: sumObject },
  'numbers and statistics': { names: ['_stats'], value: fc.oneof(number, statistics) },
  'arrays of one length': {
    names: ['_stats'], value: fc.array(fc.oneof(number, statistics), { minLength: 3, maxLength: 3 }),
  },
  'any values': {
    names: ['_count', '_first', '_last', '_top_1', '_top_4', '_bottom_100', '_approx_count_distinct'], value: anyValue,
  },
  'values that may fail': { names: ['_sum', '_stats'], value: fc.oneof({ weight: 20, arbitrary: number }, anyValue) },
}

/** Returns the result, or a mark that it failed: which of several failures is reported depends on the order. */
function outcome(result: () => string): string {
  try {
    const json = result()
    return json.startsWith('{"error":"builtin_reduce_error"') ? 'failed' : json
  } catch (error) {
    expect((error as { error?: unknown }).error).to.equal('invalid_value')
    return 'failed'
  }
}

/** Divides rows, in any order, into runs. */
function divided(rows: readonly ReducedRow[], order: readonly number[], lengths: readonly number[]): ReducedRow[][] {
  const shuffled = rows.map((row, at) => ({ row, order: order[at % order.length]! }))
    .toSorted((a, b) => a.order - b.order).map(({ row }) => row)
  const runs: ReducedRow[][] = []
  for (let at = 0, i = 0; at < shuffled.length; i++) {
    const length = lengths[i % lengths.length]!
    runs.push(shuffled.slice(at, at + length))
    at += length
  }
  return runs
}

describe('built-in reduce functions over a divided run', () => {
  for (const [kind, { names, value }] of Object.entries(kinds)) {
    for (const name of names) {
      it(`${name} of ${kind} does not depend on the division and the order of combination`, () => {
        const values = fc.array(fc.tuple(value, fc.nat({ max: 30 })), { minLength: 1, maxLength: 40, size: 'max' })
        const order = fc.array(fc.nat(), { minLength: 1, maxLength: 40, size: 'max' })
        const lengths = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 })
        fc.assert(fc.property(values, order, lengths, (pairs, places, runLengths) => {
          const rows = pairs.map(([json, key], at) => rowOf(JSON.stringify(json), key, `d${at % 5}`, at))
          const whole = outcome(() => reductionOf(name, rows).result())
          const states = divided(rows, places, runLengths).map(run => reductionOf(name, run).encode())
          expect(outcome(() => combined(name, states).result())).to.equal(whole)
          const tree = states.map((state, at) => combined(name, [state, ...states.slice(at + 1, at + 2)]).encode())
          const pairwise = combined(name, tree.filter((_, at) => at % 2 === 0)).encode()
          expect(outcome(() => combined(name, [pairwise]).result()), 'after being encoded twice').to.equal(whole)
        }), { numRuns: 150 })
      })
    }
  }
})
