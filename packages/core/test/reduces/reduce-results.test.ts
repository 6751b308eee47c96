import { expect } from 'chai'
import { combined, reduced, reductionOf, rowOf, rowsOf } from './reduce-rows.ts'

function resultOf(name: string, values: readonly unknown[]): unknown {
  return reduced(name, rowsOf(values))
}

describe('results of built-in reduce functions', () => {
  it('_sum adds numbers', () => {
    expect(resultOf('_sum', [10, 20, 5, 7, 1, 2.5, 4, 100, 1000])).to.equal(1149.5)
    expect(reductionOf('_sum', rowsOf([2 ** 53, 1])).result()).to.equal('9007199254740993')
  })

  it('_sum adds arrays element by element; a number is added to the first element', () => {
    expect(resultOf('_sum', [[1, 2], [10, 20, 30], 0.5])).to.deep.equal([11.5, 22, 30])
    expect(resultOf('_sum', [2, [3, 5, 7], [0, 0, 0, 42], 1, 3])).to.deep.equal([9, 5, 7, 42])
    expect(resultOf('_sum', [[], 3])).to.deep.equal([3])
    expect(resultOf('_sum', [[]])).to.deep.equal([0])
    expect(resultOf('_sum', [[], []])).to.deep.equal([0])
    expect(resultOf('_sum', [{ a: [] }])).to.deep.equal({ a: [] })
  })

  it('_sum adds objects member by member and orders the names by bytes', () => {
    const rows = rowsOf([{ x: 1, y: { z: [1] } }, { x: 2, w: 5 }, { y: { z: [2, 3] } }])
    expect(reductionOf('_sum', rows).result()).to.equal('{"w":5,"x":3,"y":{"z":[3,3]}}')
    const proto = [rowOf('{"__proto__":1}'), rowOf('{"__proto__":{"toString":2}}'), rowOf('{"a":1}')]
    expect(reductionOf('_sum', [proto[0]!, proto[0]!, proto[2]!]).result()).to.equal('{"__proto__":2,"a":1}')
    expect(reductionOf('_sum', [proto[1]!]).result()).to.equal('{"__proto__":{"toString":2}}')
  })

  for (const [values, causedBy] of [
    [[1, 'ten', 2], 'ten'], [[null], null], [[true], true], [[[1, 'x']], [1, 'x']], [[{ a: { b: 'no' } }], 'no'],
    [[1, { a: 1 }], { a: 1 }], [[{ a: 1 }, 3], 3], [[{ a: { b: 1 } }, { a: 2 }], 2], [[[1], { a: 1 }], { a: 1 }],
    [[[[1]]], [[1]]],
  ] as const) {
    it(`_sum of ${JSON.stringify(values)} is an error that names the value`, () => {
      const result = resultOf('_sum', values) as { readonly reason: string }
      expect(result).to.deep.include({ error: 'builtin_reduce_error', caused_by: causedBy })
      expect(result.reason).to.match(/^The _sum function requires that map values be numbers, arrays of numbers, or/)
    })
  }

  for (const [first, second, causedBy] of [
    [[{ a: 1 }], [1, 2], 3], [[1], [{ a: 1 }, { b: 2 }], { a: 1, b: 2 }], [[{ a: 1 }], [[1], [1, 2]], [2, 2]],
    [[{ a: { b: 1 } }], [{ a: 5 }], 5], [[{ a: 5 }], [{ a: { b: [1] } }], { b: [1] }],
  ] as const) {
    it(`_sum of ${JSON.stringify(first)} and another _sum of ${JSON.stringify(second)} is an error`, () => {
      const states = [first, second].map(values => reductionOf('_sum', rowsOf(values)).encode())
      const result = JSON.parse(combined('_sum', states).result()) as unknown
      expect(result).to.deep.include({ error: 'builtin_reduce_error', caused_by: causedBy })
    })
  }

  it('_count counts rows', () => {
    expect(resultOf('_count', ['x', null, 7, { o: 1 }])).to.equal(4)
  })

  it('_stats computes five numbers', () => {
    expect(reductionOf('_stats', rowsOf([10, 20, 5, 7, 1, 2.5, 4, 100, 1000])).result())
      .to.equal('{"sum":1149.5,"count":9,"min":1,"max":1000,"sumsqr":1010597.25}')
  })

  it('_stats computes them for each element of arrays', () => {
    expect(resultOf('_stats', [[10, 1], [20, 1]])).to.deep.equal([
      { sum: 30, count: 2, min: 10, max: 20, sumsqr: 500 }, { sum: 2, count: 2, min: 1, max: 1, sumsqr: 2 },
    ])
  })

  it('_stats combines numbers with statistics, and ignores other members of these', () => {
    const a = { sum: 10, count: 4, min: 1, max: 5, sumsqr: 30, other: 'x' }
    expect(resultOf('_stats', [a, { sum: 2, count: 1, min: 2, max: 2, sumsqr: 4 }, 7]))
      .to.deep.equal({ sum: 19, count: 6, min: 1, max: 7, sumsqr: 83 })
    expect(resultOf('_stats', [[1, a]])).to.deep.equal([
      { sum: 1, count: 1, min: 1, max: 1, sumsqr: 1 }, { sum: 10, count: 4, min: 1, max: 5, sumsqr: 30 },
    ])
  })

  for (const [values, reason] of [
    [['ten'], `The _stats function requires that map values be numbers or arrays of numbers, not '"ten"'`],
    [[1, null], `The _stats function requires that map values be numbers or arrays of numbers, not 'null'`],
    [[[1, [2]]], `The _stats function requires that map values be numbers or arrays of numbers, not '[2]'`],
    [[{ sum: 1, count: 1, min: 1, max: 1 }],
      'user _stats input missing required field sumsqr ({"sum":1,"count":1,"min":1,"max":1})'],
    [[{ sum: 'x', count: 1, min: 1, max: 1, sumsqr: 1 }], 'non-numeric _stats input received for sum: "x"'],
    [[1, [1]], `all map values be numbers, or all be arrays of the same length, not '[1]'`],
    [[[1], [1, 2]], `all map values be numbers, or all be arrays of the same length, not '[1,2]'`],
    [[1e200], 'A sum of _stats is beyond the range of doubles'],
  ] as const) {
    it(`_stats of ${JSON.stringify(values)} fails`, () => {
      expect(() => resultOf('_stats', values)).to.throw(reason).that.includes({ error: 'invalid_value', status: 500 })
    })
  }

  it('_stats refuses statistics that are beyond the range of doubles', () => {
    const row = rowOf('{"sum":1,"count":1,"min":-1e400,"max":1,"sumsqr":1}')
    expect(() => reduced('_stats', [row])).to.throw('non-numeric _stats input received for min')
  })

  it('_first and _last select by key, id and number, in whichever order rows come', () => {
    const rows = [
      rowOf('20', 'ann', 'p2'), rowOf('50', 'ann', 'p0'), rowOf('51', 'ann', 'p0', 1), rowOf('10', 'bob', 'p4'),
      rowOf('90', 'cy', 'p3'), rowOf('91', 'cy', 'p3', 1),
    ]
    expect([reduced('_first', rows), reduced('_last', rows)]).to.deep.equal([50, 91])
    expect([reduced('_first', rows.toReversed()), reduced('_last', rows.toReversed())]).to.deep.equal([50, 91])
  })

  it('_top_N and _bottom_N list different values in the order of the collation', () => {
    const points = [50, 70, 20, 90, 10, 60]
    expect(resultOf('_top_2', points)).to.deep.equal([90, 70])
    expect(resultOf('_bottom_3', points)).to.deep.equal([10, 20, 50])
    expect(resultOf('_top_100', [3, 1, 3, 1])).to.deep.equal([3, 1])
    const mixed = ['b', 'B', 'a', null, { a: 1 }, [1], 7, true]
    expect(resultOf('_bottom_8', mixed)).to.deep.equal([null, true, 7, 'a', 'b', 'B', [1], { a: 1 }])
    expect(resultOf('_top_8', mixed)).to.deep.equal([{ a: 1 }, [1], 'B', 'b', 'a', 7, true, null])
  })
})
