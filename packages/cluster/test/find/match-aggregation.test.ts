import { expect } from 'chai'
import { Aggregation, ApiError, matchesSelector, parseAggregateQuery, parseSelector } from '@sectional/core'
import type { JsonObject } from '@sectional/core'
import type { AggregatedMatches, MatchAggregation } from '../../src/contracts/find-query.ts'
import { request } from '../replica-world.ts'
import { FindWorld, indexSource } from './find-world.ts'
import type { StoredDocument } from './find-world.ts'

const documents: readonly StoredDocument[] = Array.from({ length: 2_400 }, (_, i) => ({
  _id: `d${i}`, group: i % 7, ...(i % 3 > 0 && { price: i / 8 }), tag: `tag ${i % 5}`,
}))
const aggregate = parseAggregateQuery({
  group_by: ['group'],
  aggregates: {
    n: { $count: true }, prices: { $count: 'price' }, total: { $sum: 'price' }, mean: { $avg: 'price' },
    least: { $min: 'price' }, last: { $max: 'tag' }, tags: { $distinct: 'tag' },
  },
})
const byGroup = indexSource(['group'])
const query: MatchAggregation = {
  selector: parseSelector({}), source: { kind: 'documents' }, documents: 'winner', update: true, timeoutMs: 10_000,
  isExact: false, aggregate,
}

async function filled(options: ConstructorParameters<typeof FindWorld>[0]): Promise<FindWorld> {
  const world = new FindWorld(options)
  world.pageRows = 100
  for (let at = 0; at < documents.length; at += 400) await world.put(documents.slice(at, at + 400))
  return world
}

function aggregated(
  world: FindWorld, asked: Partial<MatchAggregation>, via = 'a',
): Promise<AggregatedMatches> {
  return world.during(world.coordinator(via).aggregateMatches(world.db, { ...query, ...asked }, request()))
}

function expected(selector: JsonObject, of = aggregate): readonly string[] {
  const aggregation = new Aggregation(of)
  for (const each of documents) if (matchesSelector(parseSelector(selector), each)) aggregation.add(each)
  return aggregation.rows()
}

describe('an aggregation of matches', () => {
  it('is the same as one of all documents in one list, through an index and without one', async () => {
    const world = await filled({ q: 3 })
    for (const selector of [{}, { group: { $gt: 4 } }, { tag: 'tag 3', price: { $lt: 100 } }, { group: 99 }]) {
      for (const source of [query.source, byGroup]) {
        const answer = await aggregated(world, { source, selector: parseSelector(selector) })
        expect(answer.rows).to.deep.equal(expected(selector))
        expect(answer.count).to.equal(documents.filter(each => matchesSelector(parseSelector(selector), each)).length)
      }
    }
    const covered = parseAggregateQuery({ group_by: ['group'], aggregates: { n: { $count: true } } })
    const { rows, statistics } = await aggregated(world, { source: byGroup, documents: 'none', aggregate: covered })
    expect(rows).to.deep.equal(expected({}, covered))
    expect(statistics).to.include({ keysExamined: documents.length, documentsExamined: 0 })
    expect(world.openScans).to.equal(0)
  })

  it('takes the number of all documents from the counts in an index with exact ranges', async () => {
    const world = await filled({ q: 3 })
    const source = indexSource(['group'], [5], [5, {}])
    const counts = parseAggregateQuery({ aggregates: { 2: { $count: true }, 1: { $count: true } } })
    const asked = { source, selector: parseSelector({ group: 5 }), aggregate: counts, documents: 'none' } as const
    const examined = await aggregated(world, asked)
    world.calls.length = 0
    const { rows, count, statistics } = await aggregated(world, { ...asked, isExact: true })
    expect([rows, count]).to.deep.equal([examined.rows, examined.count])
    expect(statistics.keysExamined).to.equal(0)
    expect(new Set(world.calls.map(({ verb }) => verb))).to.deep.equal(new Set(['reduceIndex']))
  })

  it('counts no document twice when replicas fail in the middle', async () => {
    const world = await filled({ q: 1, nodes: ['a', 'b', 'c', 'out'], n: 3 })
    world.pageRows = 1
    for (const source of [query.source, byGroup]) {
      for (const node of ['a', 'b', 'c']) await aggregated(world, { source }, node)
      world.faults.set('a', { kind: 'break-scan', afterPages: 2 })
      world.faults.set('b', { kind: 'break-scan', afterPages: 1 })
      world.calls.length = 0
      expect((await aggregated(world, { source }, 'out')).rows).to.deep.equal(expected({}))
      expect(new Set(world.calls.map(({ node }) => node))).to.include.keys('a', 'b')
      world.faults.clear()
    }
  })

  it('fails with more groups than an answer may have, and ends its calls', async () => {
    const world = await filled({ q: 2 })
    await world.put(Array.from({ length: 400 }, (_, i) => ({ _id: `x${i}`, long: `${i} ${'x'.repeat(50_000)}` })))
    const long = parseAggregateQuery({ group_by: ['long'], aggregates: { n: { $count: true } } })
    const failure = await aggregated(world, { aggregate: long }).then(() => undefined, (error: unknown) => error)
    expect(failure).to.be.instanceOf(ApiError).with.property('message').that.includes('characters')
    expect(world.openScans).to.equal(0)
  })
})
