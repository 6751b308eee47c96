import { ReplicaError, ApiError, parseQueryIndex, SortKeyEncoder, type FoundDocument } from '@sectional/core'
import type { CountQuery, FindQuery, FindStatistics, IndexRanges, OperationContext } from '@sectional/cluster'
import type { ManualClock } from '@sectional/runtime'
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

  /** Milliseconds between matches. */
  delayMs = 0
  clock: ManualClock | undefined

  /** Waits like an operation, which its signal ends. */
  async #wait(signal: AbortSignal): Promise<void> {
    if (this.delayMs === 0) return
    const waited = Promise.withResolvers<void>()
    const timer = this.clock!.setTimer(this.delayMs, waited.resolve)
    signal.addEventListener('abort', () => waited.reject(new ApiError('service_unavailable')), { once: true })
    await waited.promise.finally(() => timer.cancel())
  }

  find = async (_db: unknown, query: FindQuery, { signal }: OperationContext) => {
    this.queries.push(query)
    const wait = (): Promise<void> => this.#wait(signal)
    this.open++
    const { documents, failure } = this
    return {
      matches: (async function* () {
        for (const document of documents) {
          await wait()
          yield [document]
        }
        await wait()
        if (failure !== undefined) throw failure
      })(),
      statistics: () => this.statistics, lastPosition: () => documents.at(-1),
      close: async () => { this.open-- },
    }
  }

  countMatches = async (_db: unknown, query: CountQuery, { signal }: OperationContext) => {
    this.counts.push(query)
    await this.#wait(signal)
    return { count: 3, statistics: this.statistics }
  }

  /** The numbers of rows that indexes have in the ranges of a query, by their first fields. */
  rows: Readonly<Record<string, number>> = {}

  estimateRows = async (_db: unknown, candidates: readonly IndexRanges[]) => candidates.map(({ definition }) => {
    const rows = this.rows[parseQueryIndex(definition).fields[0]!]
    return rows === undefined ? undefined : { rows, all: 100_000 }
  })
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

  it('refuses a body that is larger than the option allows, and names the option', async () => {
    node.configuration.put('mango', 'request_bytes_max', '1024')
    const long = { selector: { a: { $in: Array.from({ length: 200 }, () => 'text') } } }
    for (const path of ['/db/_find', '/db/_explain']) {
      const { status, json } = await find(long, path)
      expect(status).to.equal(413)
      expect(json.reason).to.include('mango/request_bytes_max is 1024')
    }
    expect((await node.post('/db/_aggregate', { ...long, group_by: 'a' })).status).to.equal(413)
    expect(fake.queries).to.deep.equal([])
  })

  it('refuses a selector with too many conditions, wherever it stands', async () => {
    await node.put('/_node/_local/_config/mango/selector_conditions_max', '"3"')
    const inOr = { $or: [{ a: 1 }, { a: { $elemMatch: { b: 2, c: 3 } } }] }
    const selector = { d: { $in: [1, 2, 3, 4, 5] }, e: { $gt: 1 }, f: 1 }
    expect((await find({ selector })).status).to.equal(200)
    const aggregates = { n: { $count: true } }
    const index = { fields: ['a'], partial_filter_selector: inOr }
    const answers = [
      await find({ selector: inOr }), await find({ selector: inOr }, '/db/_explain'),
      await find({ selector: inOr, aggregates }, '/db/_aggregate'), await find({ index }, '/db/_index'),
      await find({ selector: inOr }, '/db/_changes?filter=_selector'),
    ]
    for (const { status, json } of answers) {
      expect(status).to.equal(400)
      expect(json.reason).to.match(/^The selector has 4 conditions, and at most 3 .*mango\/selector_conditions_max/)
    }
  })

  it('ends a scan that finds no further match for too long, and its operation', async () => {
    fake.clock = node.clock
    fake.documents = [found('a', '{}'), found('b', '{}'), found('c', '{}')]
    await node.put('/_node/_local/_config/mango/scan_timeout', '"2000"')
    fake.delayMs = 1500
    expect((await find({ selector: { a: 1 } })).json.docs).to.have.length(3)
    fake.delayMs = 2500
    const ended = await find({ selector: { a: 1 } })
    expect(ended).to.include({ status: 500 })
    expect(ended.json.error).to.equal('timeout')
    expect(ended.json.reason).to.match(/no match for 2000 ms \(mango\/scan_timeout\)/)
    expect((await find({ selector: { a: 1 }, count: true })).json.error).to.equal('timeout')
    await node.during(node.post('/db/_index', { index: { fields: ['a'] } }))
    fake.documents = []
    expect((await find({ selector: { a: 1 } })).status, 'exact ranges').to.equal(200)
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

  it('is explained with the range of keys that is read', async () => {
    const rangeOf = async (selector: object, options: object = {}): Promise<unknown> => {
      const { mrargs } = (await find({ selector, ...options }, '/db/_explain')).json
      return [mrargs.start_key, mrargs.end_key]
    }
    expect(await rangeOf({ a: 1 })).to.deep.equal([null, '<MAX>'])
    expect(await rangeOf({ _id: { $gt: 'x', $lte: 'y' } })).to.deep.equal(['x', 'y'])
    expect(await rangeOf({ _id: 'x' }, { sort: [{ _id: 'desc' }] })).to.deep.equal(['x', 'x'])
    await node.during(node.post('/db/_index', { index: { fields: ['a', 'b'] } }))
    const present = { b: { $exists: true } }
    expect(await rangeOf({ a: 1, ...present })).to.deep.equal([[1], [1, '<MAX>']])
    expect(await rangeOf({ a: { $gt: 1 }, b: { $gte: 'x', $lt: 'z' } })).to.deep.equal([[1, 'x'], ['<MAX>']])
    expect(await rangeOf({ $and: [{ a: { $lt: 9 } }, { a: { $lt: 5 } }, present] })).to.deep.equal([[], [5, '<MAX>']])
    expect(await rangeOf({ a: { $beginsWith: 'x' }, ...present })).to.deep.equal([['x'], ['x\uffff', '<MAX>']])
    expect(await rangeOf({ a: { $gt: 2 }, ...present }, { sort: [{ a: 'desc' }] })).to.deep.equal([['<MAX>'], [2]])
    expect(await rangeOf({ a: { $gt: 9, $lt: 3 }, ...present })).to.deep.equal([null, null])
  })

  it('reads a second index when that saves many documents, and says why or why not', async () => {
    for (const name of ['a', 'b', 'c']) {
      await node.during(node.post('/db/_index', { index: { fields: [name] }, ddoc: name, name }))
    }
    fake.rows = { a: 2000, b: 1250 }
    const query = { selector: { a: 1, b: 2, c: 3 } }
    const { json } = await find({ ...query, advice: true }, '/db/_explain')
    expect(json.index.name).to.equal('a')
    expect(json.intersection).to.deep.include({ documents_alone: 2000, documents: 25 })
    expect(json.intersection.index.name).to.equal('b')
    expect(json.advice.not_intersected).to.have.length(1)
    expect(json.advice.not_intersected[0].index.name).to.equal('c')
    expect(json.advice.not_intersected[0].why).to.include('not known')
    await find(query)
    const { source } = lastQuery()
    expect(source).to.have.nested.property('within.key', new SortKeyEncoder('root').encode([2]))
    // The order of the answer is still that of the first index.
    await find({ ...query, sort: ['c'] })
    expect(lastQuery().source).to.not.have.property('within')
    fake.rows = { a: 2000, b: 1250, c: 50_000 }
    await find(query)
    expect(lastQuery().source).to.have.nested.property('within.key', new SortKeyEncoder('root').encode([1]))
    await find({ ...query, sort: ['c'] })
    expect(lastQuery().source).to.have.nested.property('within.key', new SortKeyEncoder('root').encode([1]))
    for (const single of [{ update: false }, { use_index: 'b' }]) {
      await find({ ...query, ...single })
      expect(lastQuery().source).to.have.property('definition').and.not.to.have.property('within')
    }
    await node.put('/_node/_local/_config/mango/intersection_saved_min', '"0"')
    expect((await find({ ...query, advice: true }, '/db/_explain')).json).to.not.have.property('intersection')
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
