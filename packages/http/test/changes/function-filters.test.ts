import { expect } from 'chai'
import type { CoordinatorNode } from '@sectional/cluster'
import {
  MemorySandbox, SandboxError, sleep, type JsonText, type Sandbox, type SandboxFunction,
} from '@sectional/runtime'
import { adminAuthorization, MemoryNode } from '../memory-node.ts'

const design = {
  filters: {
    odd: 'function (doc, req) { return doc.n % 2 === 1 }',
    by: 'function (doc, req) { return doc.n === Number(req.query.n) }',
    gone: 'function (doc) { return doc._deleted }',
    broken: 'function (doc) { return doc. }',
    throws: 'function (doc) { return doc.missing.member }',
    picky: 'function (doc) { if (doc.n === 9) throw { forbidden: "no nine" }; return true }',
    'odd/ones': 'function (doc) { return doc.n === 1 }',
    'half%': 'function (doc) { return doc.n === 2 }',
    named: 'function (doc, req) { return require("lib/names").list.includes(doc._id) }',
  },
  lib: { names: 'exports.list = ["b", "c"]' },
  views: {
    big: { map: 'function (doc) { if (doc.n > 2) emit(doc.n) }' }, broken: { map: 'function (' },
    many: { map: 'function (doc) { for (let n = 0; n < doc.n; n++) emit(n) }' },
    'big/ones': { map: 'function (doc) { if (doc.n > 3) emit(doc.n) }' },
  },
}

describe('filter functions of changes feeds', () => {
  let node: MemoryNode
  beforeEach(() => begin())
  afterEach(() => node.stop())

  async function begin(sandbox?: Sandbox, wrap?: (coordinator: CoordinatorNode) => CoordinatorNode): Promise<void> {
    node = new MemoryNode({ ...(sandbox && { sandbox }), ...(wrap && { wrap }) })
    await node.put('/db?q=1')
    const database = node.control.state()!.databases.get('db')!
    const context = { requestId: 'test', signal: new AbortController().signal }
    // The API refuses design documents with broken functions.
    const path = { start: 1, ids: ['ff'] }
    const body = Buffer.from(JSON.stringify(design))
    await node.coordinator.storeRevisions(database, [{ id: '_design/f', path, deleted: false, body }], {}, context)
  }
  const write = async (numbers: Readonly<Record<string, number>>): Promise<void> => {
    const docs = Object.entries(numbers).map(([_id, n]) => ({ _id, n }))
    expect((await node.post('/db/_bulk_docs', { docs })).status).to.equal(201)
  }
  const changes = async (query: string): Promise<any> => {
    const answer = await node.get(`/db/_changes?${query}`)
    expect(answer.status, answer.text).to.equal(200)
    return answer.json
  }
  const ids = async (query: string): Promise<string[]> => (await changes(query)).results.map((row: any) => row.id)

  it('choose rows by the document and the request', async () => {
    await write({ a: 1, b: 2, c: 3, d: 4 })
    expect(await ids('filter=f/odd')).to.deep.equal(['a', 'c'])
    expect(await ids('filter=f/odd&descending=true')).to.deep.equal(['c', 'a'])
    expect(await ids('filter=f/by&n=4')).to.deep.equal(['d'])
    expect(await ids('filter=f/by')).to.deep.equal([])
    expect(await ids('filter=f/named')).to.deep.equal(['b', 'c'])
    const posted = await node.post('/db/_changes?filter=f/by&n=2', { anything: true })
    expect(posted.json.results.map((row: any) => row.id)).to.deep.equal(['b'])
  })

  it('have names with slashes, which are percent-encoded in the value of the parameter', async () => {
    await write({ a: 1, b: 2, c: 3, d: 4 })
    expect(await ids('filter=f/odd%252Fones')).to.deep.equal(['a'])
    expect(await ids('filter=f/half%25')).to.deep.equal(['b'])
    expect(await ids('filter=_view&view=f/big%252fones')).to.deep.equal(['d'])
  })

  it('let rows pass for which the map function of a view emits', async () => {
    await write({ a: 1, b: 2, c: 3, d: 4 })
    expect(await ids('filter=_view&view=f/big')).to.deep.equal(['c', 'd'])
    const { results: [row], pending } = await changes('filter=_view&view=f/big&limit=1&include_docs=true')
    expect([row.doc.n, pending]).to.deep.equal([3, 1])
    await write({ e: 20_001, g: 0 })
    expect(await ids('filter=_view&view=f/many')).to.deep.equal(['a', 'b', 'c', 'd', 'e'])
  })

  it('are counted by limit after they have chosen, and rows that they leave out advance the last token', async () => {
    await write({ a: 1, b: 2, c: 3, d: 4, e: 5, g: 6 })
    const first = await changes('filter=f/odd&limit=2')
    expect([first.results.map((row: any) => row.id), first.pending]).to.deep.equal([['a', 'c'], 3])
    const second = await changes(`filter=f/odd&limit=2&since=${first.last_seq}`)
    expect([second.results.map((row: any) => row.id), second.pending]).to.deep.equal([['e'], 0])
    expect((await changes(`since=${second.last_seq}`)).results).to.deep.equal([])
    expect(await changes('filter=f/odd&limit=0')).to.deep.include({ results: [], pending: 7 })
  })

  it('see tombstones with their members', async () => {
    await write({ a: 1, b: 2 })
    const { _rev } = (await node.get('/db/a')).json
    await node.put('/db/a', { n: 9, _deleted: true, _rev })
    const { results: [row] } = await changes('filter=f/gone&include_docs=true')
    expect([row.id, row.deleted, row.doc.n]).to.deep.equal(['a', true, 9])
    expect(await ids('filter=f/odd')).to.deep.equal(['a'])
  })

  it('decide about every leaf with style=all_docs, and otherwise about the winner', async () => {
    const docs = [{ _id: 'd', _rev: '1-aa', n: 1 }, { _id: 'd', _rev: '1-bb', n: 2 }, { _id: 'e', _rev: '1-cc', n: 4 }]
    await node.post('/db/_bulk_docs', { new_edits: false, docs })
    const { results } = await changes('filter=f/odd&style=all_docs&include_docs=true')
    expect(results.map((row: any) => [row.changes, row.doc.n])).to.deep.equal([[[{ rev: '1-aa' }], 2]])
    expect(await ids('filter=f/odd')).to.deep.equal([])
  })

  it('see the ancestry, stubs of attachments, and conflicts on request', async () => {
    const sandbox = new WatchedSandbox()
    await node.stop()
    await begin(sandbox)
    const history = Array.from({ length: 30 }, (_, index) => (30 - index).toString(16).padStart(2, '0'))
    await node.post('/db/_bulk_docs', { new_edits: false, docs: [
      { _id: 'd', _rev: `30-${history[0]}`, _revisions: { start: 30, ids: history }, n: 1,
        _attachments: { a: { data: 'YWJj', content_type: 'text/plain' } } },
      { _id: 'd', _rev: '2-aa', n: 2 },
    ] })
    await ids('filter=f/odd')
    const plain = sandbox.documents.find(({ _id }) => _id === 'd')!
    expect(plain['_revisions']).to.deep.equal({ start: 30, ids: history.slice(0, 20) })
    expect(plain['_attachments'].a).to.include({ stub: true, length: 3 })
    expect(plain).to.not.have.property('_conflicts')
    sandbox.documents.length = 0
    await ids('filter=f/odd&conflicts=true&style=all_docs')
    const [winner, loser] = sandbox.documents.filter(({ _id }) => _id === 'd')
    expect([winner!['_conflicts'], loser!['_rev'], loser!['n']]).to.deep.equal([['2-aa'], '2-aa', 2])
    const first = sandbox.documents.find(({ _id }) => _id === '_design/f')!
    expect(first['_revisions']).to.deep.equal({ start: 1, ids: ['ff'] })
  })

  it('are found whatever slashes are around their names', async () => {
    await write({ a: 1, b: 2 })
    const plain = await ids('filter=f/odd')
    for (const path of ['f//odd', '/f/odd', 'f/odd/']) expect(await ids(`filter=${path}`), path).to.deep.equal(plain)
    expect(await ids('filter=/')).to.deep.equal(await ids(''))
  })

  it('are errors when they are missing, do not compile or throw', async () => {
    await write({ a: 1 })
    const refused: readonly (readonly [query: string, status: number, error: string, reason: RegExp])[] = [
      ['filter=f/none', 404, 'not_found', /^missing json key: none$/],
      ['filter=none/odd', 404, 'not_found', /^missing$/],
      ['filter=f/odd/more', 400, 'bad_request', /^`filter` must be of the form `designname\/filtername`$/],
      ['filter=_view&view=big', 400, 'bad_request', /^`view` must be of the form `designname\/viewname`$/],
      ['filter=_view&view=f/none', 404, 'not_found', /^missing json key: none$/],
      ['filter=f/broken&since=now', 500, 'compilation_error', /Unexpected token/],
      ['filter=f/broken&since=now&feed=continuous&timeout=0', 500, 'compilation_error', /Unexpected token/],
      ['filter=_view&view=f/broken', 500, 'compilation_error', /Unexpected/],
      ['filter=f/throws', 500, 'render_error', /TypeError: Cannot read properties of undefined/],
      ['filter=f/throws&feed=eventsource&timeout=0', 500, 'render_error', /TypeError/],
    ]
    for (const [query, status, error, reason] of refused) {
      const { status: got, json } = await node.get(`/db/_changes?${query}`)
      expect([got, json.error], query).to.deep.equal([status, error])
      expect(json.reason, query).to.match(reason)
    }
  })

  it('break off a continuous feed when they throw later', async () => {
    await write({ a: 1 })
    const feed = node.get('/db/_changes?feed=continuous&filter=f/picky&heartbeat=1000')
    await node.clock.advance(100)
    await write({ b: 9 })
    const answer = await node.during(feed)
    expect([answer.status, answer.cut]).to.deep.equal([200, true])
    expect(answer.text).to.contain('"id":"a"').and.not.contain('"id":"b"')
  })

  it('stay in a feed as they were when it began', async () => {
    await write({ a: 1 })
    const feed = node.get('/db/_changes?feed=continuous&filter=f/odd&timeout=1000')
    await node.clock.advance(100)
    const { _rev } = (await node.get('/db/_design/f')).json
    await node.delete(`/db/_design/f?rev=${_rev}`)
    await write({ b: 2, c: 3 })
    const rows = (await node.during(feed)).text.trim().split('\n').map(line => JSON.parse(line))
    expect(rows.map(row => row.id)).to.deep.equal(['a', 'c', undefined])
    expect((await node.get('/db/_changes?filter=f/odd')).json).to.deep.equal({ error: 'not_found', reason: 'deleted' })
  })

  it('decide about the winner of a row whose revision no other replica has', async () => {
    await node.stop()
    await begin(undefined, coordinator => {
      coordinator.openManyRevisions = async (_db, requests) =>
        requests.map(({ revisions }) =>
          revisions === 'leaves' ? null : revisions.map(revision => ({ kind: 'missing', revision })))
      return coordinator
    })
    await node.post('/db/_bulk_docs', { new_edits: false, docs: [
      { _id: 'd', _rev: '2-bb', n: 3 }, { _id: 'd', _rev: '2-aa', n: 1 },
    ] })
    const { results: [row] } = await changes('filter=f/odd&style=all_docs')
    expect(row.changes).to.deep.equal([{ rev: '2-bb' }])
  })

  it('are asked again about documents that did not fit into an answer', async () => {
    await node.stop()
    const asked: number[] = []
    await begin(undefined, coordinator => {
      const { openManyRevisions } = coordinator
      coordinator.openManyRevisions = async (db, requests, options, context) => {
        asked.push(requests.length)
        const opened = await openManyRevisions.call(coordinator, db, requests, options, context)
        return opened.map((revisions, index) => index === 0 ? revisions : undefined)
      }
      return coordinator
    })
    const docs = Array.from({ length: 9 }, (_, n) => ({ _id: `d${n}`, _rev: `2-${n}a`, n }))
    await node.post('/db/_bulk_docs', { new_edits: false, docs })
    expect(await ids('filter=f/odd')).to.deep.equal(['d1', 'd3', 'd5', 'd7'])
    expect(Math.max(...asked)).to.be.above(1)
  })

  describe('in calls of the sandbox', () => {
    let sandbox: WatchedSandbox
    beforeEach(async () => {
      await node.stop()
      await begin(sandbox = new WatchedSandbox())
    })
    const many = (count: number) => write(Object.fromEntries(Array.from({ length: count }, (_, n) => [`d${n}`, n])))

    it('get more documents at a time while they are fast, up to a limit', async () => {
      await many(1000)
      expect(await ids('filter=f/odd')).to.have.length(500)
      expect(sandbox.sizes.slice(0, 6)).to.deep.equal([1, 2, 4, 8, 16, 32])
      expect(Math.max(...sandbox.sizes)).to.be.within(64, 128)
    })

    it('get few documents at a time when they are slow', async () => {
      await many(100)
      sandbox.before = async documents => { await sleep(node.clock, 60 * documents) }
      expect(await node.during(ids('filter=f/odd'))).to.have.length(50)
      expect(Math.max(...sandbox.sizes)).to.be.at.most(4)
    })

    it('find the document that exceeds the limits', async () => {
      await many(20)
      let failures = 0
      sandbox.before = async documents => {
        if (documents === 1 || failures > 0) return
        failures++
        throw new SandboxError('timeout', 'The function took longer than 5000 ms')
      }
      expect(await ids('filter=f/odd')).to.have.length(10)
      sandbox.before = async () => { throw new SandboxError('timeout', 'The function took longer than 5000 ms') }
      const { status, json } = await node.get('/db/_changes?filter=f/odd')
      expect([status, json.error]).to.deep.equal([500, 'timeout'])
    })

    it('are repeated while the sandbox is overloaded, for a limited time', async () => {
      await write({ a: 1 })
      let refusals = 3
      sandbox.before = async () => { if (refusals-- > 0) throw new SandboxError('overloaded', 'too many calls wait') }
      expect(await node.during(ids('filter=f/odd'))).to.deep.equal(['a'])
      refusals = Infinity
      const begin = node.clock.monotonic()
      const { status, headers } = await node.during(node.get('/db/_changes?filter=f/odd'))
      expect([status, headers['retry-after']]).to.deep.equal([503, '1'])
      expect(node.clock.monotonic() - begin).to.be.within(25_000, 31_000)
    })

    it('end with their feed when the database is deleted', async () => {
      await many(50)
      let calls = 0
      sandbox.before = async () => { calls++; await sleep(node.clock, 1000) }
      const feed = node.get('/db/_changes?filter=f/odd&feed=continuous&heartbeat=500')
      await node.clock.advance(1500)
      await node.delete('/db')
      const answer = await node.during(feed)
      expect([answer.status, answer.cut]).to.deep.equal([200, false])
      expect(calls).to.be.at.most(3)
    })

    it('do not hold back heartbeats', async () => {
      await many(3)
      sandbox.before = async () => { await sleep(node.clock, 2500) }
      const { text } = await node.during(node.get('/db/_changes?filter=f/by&heartbeat=1000'))
      expect(text.match(/^\n*/m)).to.not.equal(null)
      expect(JSON.parse(text).results).to.deep.equal([])
      // The design document and three others, each for two heartbeats.
      expect(text.split('\n').length - 1).to.be.within(4 + 6, 4 + 10)
    })

    it('end a feed without heartbeats that has had no row for the longest timeout', async () => {
      await many(40)
      node.configuration.put('chttpd', 'changes_timeout', '10000')
      sandbox.before = async () => { await sleep(node.clock, 3000) }
      const answer = await node.during(node.get('/db/_changes?filter=f/by&feed=longpoll&timeout=100'))
      const { results, last_seq: since, pending } = answer.json
      expect(results).to.deep.equal([])
      expect(pending).to.be.within(30, 40)
      expect((await changes(`since=${since}`)).results).to.have.length(pending)
    })

    it('let rows go out that wait for further ones', async () => {
      await many(10)
      sandbox.before = async () => { await sleep(node.clock, 2000) }
      const leaving = new AbortController()
      const { chunks } = await node.during(node.open(
        'GET', '/db/_changes?filter=f/odd&feed=continuous', { authorization: adminAuthorization }, undefined,
        leaving.signal,
      ))
      const reading = (async () => { for await (const chunk of chunks) return Buffer.from(chunk).toString() })()
      expect(await node.during(reading, 15_000)).to.contain('"id":"d1"').and.not.contain('"id":"d9"')
      leaving.abort()
      sandbox.before = async () => {}
      await node.clock.advance(2000)
    })
  })
})

/** Records what filter functions get. */
class WatchedSandbox extends MemorySandbox {
  readonly documents: any[] = []
  readonly sizes: number[] = []
  /** Runs before each call. */
  before: (documents: number) => Promise<void> = async () => {}

  override async filter(called: SandboxFunction, request: JsonText, documents: readonly JsonText[]) {
    this.sizes.push(documents.length)
    for (const document of documents) this.documents.push(JSON.parse(document.toString()))
    await this.before(documents.length)
    return super.filter(called, request, documents)
  }
}
