import { ReplicaError, ApiError, type FoundDocument } from '@sectional/core'
import type { CountQuery, FindQuery, FindStatistics } from '@sectional/cluster'
import { expect } from 'chai'
import { MemoryNode, type Answer } from '../memory-node.ts'

const readFew: FindStatistics = {
  keysExamined: 1, documentsExamined: 1, quorumDocumentsExamined: 0, matchesFound: 1,
}

/** The operations of queries, which answer with given documents. */
class FakeFind {
  readonly queries: FindQuery[] = []
  readonly counts: CountQuery[] = []
  documents: readonly FoundDocument[] = []
  statistics: FindStatistics = readFew
  failure: Error | undefined
  /** Queries whose answers were opened and not closed. */
  open = 0

  find = async (_db: unknown, query: FindQuery) => {
    this.queries.push(query)
    this.open++
    const { documents, failure } = this
    return {
      matches: (async function* () {
        yield documents
        if (failure !== undefined) throw failure
      })(),
      statistics: () => this.statistics, lastPosition: () => documents.at(-1),
      close: async () => { this.open-- },
    }
  }

  countMatches = async (_db: unknown, query: CountQuery) => {
    this.counts.push(query)
    return { count: 3, statistics: this.statistics }
  }

  estimateRows = async (_db: unknown, candidates: readonly unknown[]) => candidates.map(() => undefined)
}

function found(id: string, body: string): FoundDocument {
  return {
    kind: 'found', range: 0, key: '', number: 0, id, revision: '1-a', body: Buffer.from(body),
    value: Buffer.alloc(0),
  }
}

describe('_find', () => {
  let node: MemoryNode
  let fake: FakeFind
  beforeEach(async () => {
    node = new MemoryNode({ wrap: coordinator => {
      fake = new FakeFind()
      return Object.assign(coordinator, fake)
    } })
    await node.put('/db')
    await node.put('/parts?partitioned=true')
  })
  afterEach(async () => {
    expect(fake.open, 'answers that were not closed').to.equal(0)
    await node.stop()
  })

  const find = (body: object, path = '/db/_find'): Promise<Answer> => node.during(node.post(path, body))
  const lastQuery = (): FindQuery => fake.queries.at(-1)!

  it('writes documents with all digits, whole and reduced to fields', async () => {
    fake.documents = [found('a', '{"n":12345678901234567890,"in":{"x":1.50}}'), found('b', '{"n":1}')]
    expect((await find({ selector: {} })).text).to.match(
      /^\{"docs":\[\r\n\{"_id":"a","_rev":"1-a","n":12345678901234567890,"in":\{"x":1\.50\}\},\r\n.*"n":1\}\r\n\],\r\n/,
    )
    expect((await find({ selector: {}, fields: ['n', 'in.x'] })).text)
      .to.include('{"n":12345678901234567890,"in":{"x":1.50}},\r\n{"n":1}')
  })

  it('asks for nothing when no document can match, or none is wanted', async () => {
    await node.during(node.post('/db/_index', { index: { fields: ['a'] } }))
    for (const query of [{ selector: { a: { $gt: 9, $lt: 3 } } }, { selector: {}, limit: 0 }]) {
      expect((await find(query)).json).to.include({ bookmark: 'nil' }).and.have.deep.property('docs', [])
    }
    expect(fake.queries).to.deep.equal([])
  })

  it('continues behind a bookmark, and repeats it when nothing more is found', async () => {
    fake.documents = [found('a', '{}')]
    const { bookmark } = (await find({ selector: {} })).json
    fake.documents = []
    const second = await find({ selector: {}, bookmark })
    expect([lastQuery().after?.id, second.json.bookmark]).to.deep.equal(['a', bookmark])
  })

  it('refuses a bookmark of another order', async () => {
    fake.documents = [found('a', '{}')]
    const { bookmark } = (await find({ selector: {} })).json
    await node.during(node.post('/db/_index', { index: { fields: ['a'] } }))
    const refused = await find({ selector: { a: 1 }, bookmark })
    expect([refused.status, refused.json.error]).to.deep.equal([400, 'invalid_bookmark'])
  })

  it('reads one partition, whether the path or the body names it', async () => {
    await find({ selector: {} }, '/parts/_partition/p/_find')
    expect(lastQuery()).to.deep.include({ partition: 'p' })
    expect(lastQuery().source).to.deep.include({ start: { id: 'p:', inclusive: true } })
    await find({ selector: {}, partition: 'p' }, '/parts/_find')
    expect(lastQuery()).to.deep.include({ partition: 'p' })
    const both = await find({ selector: {}, partition: 'q' }, '/parts/_partition/p/_find')
    expect([both.status, both.json.error]).to.deep.equal([400, 'bad_request'])
  })

  it('warns when many documents are read for few results, unless the option is 0', async () => {
    fake.statistics = { ...readFew, documentsExamined: 11 }
    fake.documents = [found('a', '{}')]
    expect((await find({ selector: { a: 1 } })).json.warning).to.match(/^No matching index.*\nThe number of documents/)
    // Eight shards have found eight matches, of which the answer has one.
    fake.statistics = { ...readFew, documentsExamined: 80, matchesFound: 8 }
    expect((await find({ selector: { a: 1 }, limit: 1 })).json.warning).to.match(/^No matching index[^\n]*$/)
    fake.statistics = { ...readFew, documentsExamined: 11 }
    await node.put('/_node/_local/_config/mango/index_scan_warning_threshold', '"0"')
    expect((await find({ selector: { a: 1 } })).json.warning).to.match(/^No matching index[^\n]*$/)
  })

  it('suggests the index that would help in a header of ASCII, with and without a result', async () => {
    const scan = await find({ selector: { 'größe': { $gt: 1 }, art: 'x' } })
    expect(scan.headers['x-suggested-index']).to.match(/^[ -~]*$/)
    expect(JSON.parse(scan.headers['x-suggested-index']!)).to.deep.equal({
      index: { fields: ['art', 'größe'] }, type: 'json',
    })
    const refused = await find({ selector: { a: 1 }, sort: ['b'], advice: true })
    const body = { index: { fields: ['a', 'b'] }, type: 'json' }
    expect(refused.json).to.deep.include({ error: 'no_usable_index' })
    expect(refused.json.advice).to.deep.equal({ create_index: { method: 'POST', path: '/db/_index', body } })
    await node.during(node.post('/db/_index', body))
    const served = await find({ selector: { a: 1 }, sort: ['b'], advice: true })
    expect([served.status, served.headers['x-suggested-index']]).to.deep.equal([200, undefined])
    expect(served.json.advice.rejected).to.deep.include.members([
      { ddoc: null, name: '_all_docs', why: served.json.advice.rejected.at(-1).why },
    ])
  })

  it('refuses two directions, also of one field', async () => {
    for (const sort of [['a', { b: 'desc' }], [{ a: 'asc' }, { a: 'desc' }]]) {
      expect((await find({ selector: {}, sort })).json.error).to.equal('unsupported_mixed_sort')
    }
  })

  it('sorts in memory only on request and without an index', async () => {
    const query = { selector: { a: 1 }, sort: [{ b: 'desc' }] }
    expect((await find(query)).status).to.equal(400)
    expect((await find({ ...query, sort_in_memory: true })).status).to.equal(200)
    expect(lastQuery()).to.deep.include({ sort: { fields: [['b']], rowsMax: 10_000 }, descending: true })
    expect((await find({ ...query, sort_in_memory: true }, '/db/_explain')).json).to.include({ sort_in_memory: true })
    await node.during(node.post('/db/_index', { index: { fields: ['a'] } }))
    const refused = await find({ ...query, sort_in_memory: true, allow_fallback: false })
    expect([refused.status, refused.json.error]).to.deep.equal([400, 'no_usable_index'])
    await node.during(node.post('/db/_index', { index: { fields: ['b', 'a'] } }))
    await find({ ...query, sort_in_memory: true })
    expect(lastQuery()).to.not.have.property('sort')
  })

  it('counts, whatever the members say that concern only documents', async () => {
    const { status, json } = await find({ selector: { a: 1 }, count: true, sort: ['b'], limit: 0, fields: ['x'] })
    expect([status, json]).to.deep.equal([200, {
      count: 3, warning: 'No matching index found, create an index to optimize query time.',
    }])
    expect(fake.queries).to.deep.equal([])
  })

  it('blames the selector when it takes too long on a replica', async () => {
    const cause = new ReplicaError('exhausted', 'the pattern took more than 200 ms')
    fake.failure = new ApiError('timeout', cause.message, { cause })
    expect(await find({ selector: { a: { $regex: 'x' } } })).to.deep.include({
      status: 400, json: { error: 'bad_arg', reason: 'the pattern took more than 200 ms' },
    })
  })

  it('breaks the connection when the documents end early, so that no answer seems complete', async () => {
    fake.documents = Array.from({ length: 100 }, (_, at) => found(`${at}`, `{"text":"${'x'.repeat(1024)}"}`))
    fake.failure = new ApiError('service_unavailable')
    expect(await find({ selector: {} })).to.include({ status: 200, cut: true })
  })

  it('reads an index as it is when it need not be up to date', async () => {
    await node.during(node.post('/db/_index', { index: { fields: ['a'] } }))
    for (const [members, update] of [[{}, true], [{ update: false }, false], [{ stale: 'ok' }, false]] as const) {
      await find({ selector: { a: 1 }, ...members })
      expect(lastQuery().update, JSON.stringify(members)).to.equal(update)
    }
  })

  it('reads documents from several replicas, even if the index has all fields', async () => {
    await node.during(node.post('/db/_index', { index: { fields: ['a'] } }))
    await find({ selector: { a: 1 }, fields: ['a'] })
    expect(lastQuery()).to.deep.include({ documents: 'none' }).and.not.have.property('r')
    await find({ selector: { a: 1 }, fields: ['a'], r: 2 })
    expect(lastQuery()).to.deep.include({ documents: 'winner', r: 2 })
  })
})
