import type { AggregatedMatches, MatchAggregation } from '@sectional/cluster'
import { expect } from 'chai'
import { MemoryNode, type Answer } from '../memory-node.ts'

/** An operation that answers with two groups. */
class FakeAggregation {
  readonly queries: MatchAggregation[] = []

  aggregateMatches = async (_db: unknown, query: MatchAggregation): Promise<AggregatedMatches> => {
    this.queries.push(query)
    const rows = ['{"key":{"a":1},"value":{"n":2}}', '{"key":{"a":2},"value":{"n":1}}']
    const statistics = { keysExamined: 3, documentsExamined: 0, quorumDocumentsExamined: 0, matchesFound: 3 }
    return { rows, count: 3, statistics }
  }
}

const counted = { selector: {}, aggregates: { n: { $count: true } } }

describe('_aggregate', () => {
  let node: MemoryNode
  let fake: FakeAggregation
  beforeEach(async () => {
    node = new MemoryNode({ wrap: coordinator => {
      fake = new FakeAggregation()
      return Object.assign(coordinator, fake)
    } })
    await node.put('/db')
    await node.put('/parts?partitioned=true')
  })
  afterEach(() => node.stop())

  const aggregate = (body: object, path = '/db/_aggregate'): Promise<Answer> => node.during(node.post(path, body))
  const lastQuery = (): MatchAggregation => fake.queries.at(-1)!

  it('writes a row for each group, and says how the documents were found', async () => {
    const { status, headers, json } = await aggregate({ ...counted, selector: { a: 1 }, execution_stats: true })
    expect([status, headers['content-type']]).to.deep.equal([200, 'application/json'])
    expect(json.rows).to.deep.equal([{ key: { a: 1 }, value: { n: 2 } }, { key: { a: 2 }, value: { n: 1 } }])
    expect(json.execution_stats).to.include({ total_keys_examined: 3, results_returned: 3 })
    expect(json.warning).to.match(/^No matching index/)
    expect(JSON.parse(headers['x-suggested-index']!)).to.deep.equal({ index: { fields: ['a'] }, type: 'json' })
  })

  it('reads no documents when an index has all fields', async () => {
    await node.during(node.post('/db/_index', { index: { fields: ['a', 'b'] } }))
    await aggregate({ selector: { a: { $gt: 1 }, b: 2 }, group_by: ['a'], aggregates: { s: { $sum: 'b' } } })
    expect(lastQuery()).to.include({ documents: 'none', isExact: false })
    await aggregate({ selector: { a: 1, b: 2 }, aggregates: { n: { $count: true } } })
    expect(lastQuery()).to.include({ documents: 'none', isExact: true })
    await aggregate({ selector: { a: 1, b: 2 }, aggregates: { s: { $sum: 'c' } } })
    expect(lastQuery()).to.include({ documents: 'winner' })
  })

  it('has an answer without a question when no document can match', async () => {
    await node.during(node.post('/db/_index', { index: { fields: ['a'] } }))
    const { json } = await aggregate({ ...counted, selector: { a: { $gt: 9, $lt: 3 } } })
    expect(json.rows).to.deep.equal([{ key: {}, value: { n: 0 } }])
    expect(fake.queries).to.deep.equal([])
  })

  it('reads one partition', async () => {
    await aggregate(counted, '/parts/_partition/p/_aggregate')
    expect(lastQuery()).to.include({ partition: 'p' })
  })

  it('refuses members that are not valid', async () => {
    for (const [body, error] of [
      [{ aggregates: { n: { $count: true } } }, 'missing_required_key'], [{ selector: {} }, 'bad_request'],
      [{ ...counted, limit: 1 }, 'invalid_key'], [{ ...counted, group_by: 'a' }, 'bad_request'],
      [{ ...counted, selector: { $x: 1 } }, 'invalid_operator'],
    ] as const) {
      const { status, json } = await aggregate(body)
      expect([status, json.error], JSON.stringify(body)).to.deep.equal([400, error])
    }
  })
})
