import { expect } from 'chai'
import { parseSelector } from '@sectional/core'
import type { CountQuery, MatchCount } from '../../src/contracts/find-query.ts'
import { request } from '../replica-world.ts'
import { FindWorld, indexSource } from './find-world.ts'

async function filled(nodes = ['a', 'b', 'c']): Promise<FindWorld> {
  const world = new FindWorld({ q: 4, nodes, n: 3 })
  await world.put(Array.from({ length: 400 }, (_, i) => ({ _id: `d${i}`, group: i % 4, rank: i % 10 })))
  return world
}

const groupTwo = indexSource(['group'], [2], [2, {}])
const query: CountQuery = {
  selector: parseSelector({ group: 2 }), source: groupTwo, documents: 'none', update: true, timeoutMs: 10_000,
  isExact: false,
}

function countOf(world: FindWorld, asked: Partial<CountQuery>): Promise<MatchCount> {
  return world.during(world.coordinator('a').countMatches(world.db, { ...query, ...asked }, request()))
}

describe('a count of matches', () => {
  it('is the same from an index, from counts of ranges and from all documents', async () => {
    const world = await filled()
    for (const asked of [
      {}, { isExact: true }, { documents: 'winner' }, { source: { kind: 'documents' }, documents: 'winner' },
    ] as const) expect((await countOf(world, asked)).count).to.equal(100)
    const selector = parseSelector({ group: 2, rank: { $gt: 4 } })
    expect((await countOf(world, { selector, documents: 'winner' })).count).to.equal(40)
  })

  it('needs neither rows nor documents when the ranges contain exactly the matches', async () => {
    const world = await filled()
    await countOf(world, { isExact: true })
    world.calls.length = 0
    const { statistics } = await countOf(world, { isExact: true })
    expect(statistics).to.include({ keysExamined: 0, documentsExamined: 0, quorumDocumentsExamined: 0 })
    expect(new Set(world.calls.map(({ verb }) => verb))).to.deep.equal(new Set(['reduceIndex']))
  })

  it('is 0 without matches', async () => {
    const world = await filled()
    const source = indexSource(['group'], [9], [9, {}])
    for (const isExact of [false, true]) {
      expect((await countOf(world, { selector: parseSelector({ group: 9 }), source, isExact })).count).to.equal(0)
    }
  })
})

describe('an estimate of the rows that a query reads', () => {
  const narrow = indexSource(['rank', 'group'], [3, 1], [3, 1, {}])

  it('is made from one shard, and is undefined for an index that is not built', async () => {
    const world = await filled()
    await countOf(world, {})
    world.calls.length = 0
    const sources = [groupTwo, narrow].map(source => {
      if (source.kind !== 'index') throw new Error('not an index')
      return source
    })
    const [wide, unbuilt] = await world.during(world.coordinator('a').estimateRows(world.db, sources, {}, request()))
    expect(unbuilt).to.equal(undefined)
    expect(wide?.rows).to.be.within(50, 200)
    expect(world.calls).to.have.lengthOf(2)
  })

  it('is undefined when the replica does not answer in time', async () => {
    const world = await filled(['a', 'b', 'c', 'out'])
    world.setDatabase({ ...world.db, shards: world.db.shards.slice(0, 1) })
    await countOf(world, {})
    world.faults.set('a', { kind: 'hang' })
    const began = world.clock.monotonic()
    const estimates = await world.during(world.coordinator('out').estimateRows(
      world.db, [groupTwo].flatMap(source => source.kind === 'index' ? [source] : []), {}, request()))
    expect(estimates).to.deep.equal([undefined])
    expect(world.clock.monotonic() - began).to.be.below(1_000)
  })
})
