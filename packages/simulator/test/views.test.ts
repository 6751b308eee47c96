import { expect } from 'chai'
import fc from 'fast-check'
import { SortKeyEncoder } from '@sectional/core'
import { actions } from '../src/actions/actions.ts'
import { viewActions } from '../src/actions/view-actions.ts'
import { drawSwarmOptions } from '../src/plan/swarm-options.ts'
import { runSwarm } from '../src/swarm/swarm-run.ts'
import { compareJson } from '../src/views/json-order.ts'
import { naiveReduction, naiveRows, naiveScan } from '../src/views/naive-view.ts'
import { swarmViews } from '../src/views/view-functions.ts'
import type { Json } from '../src/views/view-functions.ts'
import { answerProblem } from '../src/views/view-answer.ts'
import { wholeView as whole } from '../src/views/view-query.ts'
import { Dice } from '../src/world/dice.ts'

const documents = [
  { _id: 'b', _rev: '1-b', v: 'c1.4' }, { _id: 'a', _rev: '1-a', v: 'c1.7' }, { _id: 'c', _rev: '1-c' },
]
const sums = swarmViews.find(({ reduce }) => reduce === '_sum')!

describe('views of the simulator', () => {
  it('have the same trace for the same seed', async () => {
    // The clients of a run draw their actions, so that not each run in which they may query views has such a query.
    for (const seed of seedsWithViews()) {
      const first = await runSwarm(seed)
      if (first.counts['custom:query-view done'] === undefined) continue
      expect((await runSwarm(seed)).traceHash).to.equal(first.traceHash)
      return
    }
  }).timeout(60_000)

  it('compare keys in the order of the indexes', () => {
    const texts = fc.string({ unit: fc.constantFrom(...'.-_019az') })
    const { json } = fc.letrec<{ json: Json }>(tie => ({
      json: fc.oneof(
        fc.constant(null), fc.boolean(), fc.integer(), texts, fc.array(tie('json'), { maxLength: 3 }),
        fc.dictionary(fc.constantFrom('a', 'b'), tie('json'), { maxKeys: 2, noNullPrototype: true }),
      ),
    }))
    const encoder = new SortKeyEncoder('root')
    fc.assert(fc.property(json, json, (a, b) => {
      const [keyA, keyB] = [encoder.encode(a), encoder.encode(b)]
      expect(Math.sign(compareJson(a, b))).to.equal(keyA < keyB ? -1 : keyA > keyB ? 1 : 0)
    }))
  })

  it('are computed from the documents', () => {
    const rows = naiveRows(sums, documents)
    expect(rows).to.deep.equal([
      { id: 'a', key: ['c1', 1], value: 7 }, { id: 'b', key: ['c1', 1], value: 4 },
    ])
    expect(naiveReduction(sums, rows, { ...whole, groupLevel: 1 })).to.deep.equal([{ key: ['c1'], value: 11 }])
    expect(naiveScan(rows, { ...whole, descending: true, skip: 1 }).map(({ id }) => id)).to.deep.equal(['a'])
    expect(naiveScan(rows, { ...whole, startKey: ['c1', 2] })).to.deep.equal([])
    expect(naiveScan(rows, { ...whole, endKey: ['c1', 1], inclusiveEnd: false })).to.deep.equal([])
    expect(naiveScan(rows, { ...whole, keys: [['c1', 1], ['c1', 1]] }).map(({ id }) => id)).to.deep.equal(
      ['a', 'b', 'a', 'b'])
  })

  it('notice wrong order, repetition, a wrong limit, and rows of two revisions', () => {
    const several = swarmViews.find(({ reduce }) => typeof reduce === 'function')!
    const rows = naiveRows(several, documents)
    expect(rows).to.have.lengthOf(3)
    expect(answerProblem(whole, rows)).to.equal(null)
    expect(answerProblem(whole, rows.toReversed())).to.match(/follows/)
    expect(answerProblem({ ...whole, descending: true }, rows.toReversed())).to.equal(null)
    expect(answerProblem(whole, [rows[0]!, ...rows])).to.match(/follows/)
    expect(answerProblem({ ...whole, limit: 2 }, rows)).to.match(/limit/)
    expect(answerProblem(whole, rows.slice(1))).to.match(/has/)
  })
})

/** Returns the first seed of a run with three nodes and all actions of views. */
function* seedsWithViews(): Generator<number> {
  for (let seed = 1; ; seed++) {
    const options = drawSwarmOptions(new Dice(seed).fork('options'), actions)
    const hasViews = viewActions.every(({ name }) => options.operations[name]! > 0)
    if (hasViews && options.idleMs === 0 && options.nodes === 3) yield seed
  }
}
