import { expect } from 'chai'
import { builtInReduce, checkReduceName } from '@sectional/core'

describe('names of built-in reduce functions', () => {
  it('select a function, also with something behind the name', () => {
    for (const name of [
      '_sum', '_count', '_stats', '_approx_count_distinct', '_first', '_last', '_top_1', '_top_100', '_bottom_7',
    ]) {
      expect(builtInReduce(name)?.name).to.equal(name)
      expect(builtInReduce(`${name}\n`)?.name).to.equal(name)
      checkReduceName(name)
    }
    expect(builtInReduce('_summary')?.name).to.equal('_sum')
  })

  it('are checked when a design document is saved', () => {
    for (const [source, reason] of [
      ['_average', '`_average` is not a supported reduce function.'],
      ['_', '`_` is not a supported reduce function.'],
      ['_top', '`_top` is not a supported reduce function.'],
      ['_top_0', 'rank value must be between 1 and 100'],
      ['_bottom_101', 'rank value must be between 1 and 100'],
      ['_top_', 'invalid rank reducer'],
      ['_top_x', 'invalid rank reducer'],
      ['_bottom_5x', 'invalid rank reducer'],
      ['_top_1.5', 'invalid rank reducer'],
      ['_top_-1', 'rank value must be between 1 and 100'],
      [`_top_${'9'.repeat(1000)}`, 'rank value must be between 1 and 100'],
    ] as const) {
      expect(builtInReduce(source), source).to.equal(undefined)
      expect(() => checkReduceName(source)).to.throw(reason).with.property('error', 'invalid_design_doc')
    }
  })

  it('are no JavaScript', () => {
    const source = 'function(keys, values) { return sum(values) }'
    expect(builtInReduce(source)).to.equal(undefined)
    checkReduceName(source)
  })
})
