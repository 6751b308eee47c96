import { expect } from 'chai'
import fc from 'fast-check'
import { SeededRandom } from '@sectional/runtime'
import { FilterBudget, IdFilter } from '../../src/reading/id-filter.ts'

const plenty = 64 * 1024 * 1024

function uuids(count: number, seed: number): string[] {
  const random = new SeededRandom(seed)
  return Array.from({ length: count }, () => Buffer.from(random.bytes(16)).toString('hex'))
}

describe('the filter of ids', () => {
  it('never denies an id that was added', () => {
    fc.assert(fc.property(fc.array(fc.oneof(fc.string({ unit: 'binary' }), fc.nat(5000)
      .map(String)), { maxLength: 1000, size: 'max' }), ids => {
      const filter = new IdFilter(new FilterBudget(plenty))
      for (const id of ids) filter.add(id)
      expect(ids.filter(id => !filter.mayHave(id))).to.deep.equal([])
    }), { numRuns: 30 })
  })

  for (const [kind, ids, others] of [
    ['random ids', uuids(100_000, 1), uuids(100_000, 2)],
    ['numbered ids', Array.from({ length: 100_000 }, (_, index) =>
      `doc-${index}`), Array.from({ length: 100_000 }, (_, index) => `doc-${index + 100_000}`)],
  ] as const) {
    it(`takes few ${kind} for others, in a few bytes each`, () => {
      const budget = new FilterBudget(8 * ids.length)
      const filter = new IdFilter(budget)
      for (const id of ids) filter.add(id)
      expect(filter.full).to.equal(false)
      expect(others.filter(id => filter.mayHave(id)).length / others.length).to.be.below(0.01)
    })
  }

  it('gives up when the budget is spent, and gives its part back', () => {
    const budget = new FilterBudget(8 * 1024)
    const filter = new IdFilter(budget)
    for (const id of uuids(10_000, 3)) filter.add(id)
    expect(filter.full).to.equal(true)
    expect(budget.take(8 * 1024)).to.equal(true)
  })
})
