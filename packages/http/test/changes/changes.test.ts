import { expect } from 'chai'
import { adminAuthorization, MemoryNode } from '../memory-node.ts'

describe('the changes feed', () => {
  let node: MemoryNode
  beforeEach(async () => {
    node = new MemoryNode()
    await node.put('/db?q=1')
  })
  afterEach(() => node.stop())

  const write = async (...ids: string[]): Promise<void> => {
    for (const id of ids) expect((await node.put(`/db/${id}`, { n: id.length })).status).to.equal(201)
  }
  const masked = (text: string): string => text.replace(/"\d+-A[\w-]+"/g, '"S"').replace(/"1-[0-9a-f]{32}"/g, '"R"')
  const row = (id: string): string => `{"seq":"S","id":"${id}","changes":[{"rev":"R"}]}`

  it('frames the normal feed as CouchDB does', async () => {
    await write('a', 'b')
    expect(masked((await node.get('/db/_changes')).text)).to.equal(
      `{"results":[\n${row('a')},\r\n${row('b')}\n],\n"last_seq":"S","pending":0}\n\n`,
    )
    expect(masked((await node.get('/db/_changes?since=now')).text)).to.equal(
      '{"results":[\n\n],\n"last_seq":"S","pending":0}\n\n',
    )
  })

  it('accepts a time as since, and sends everything when it is before all changes', async () => {
    await write('a')
    expect((await node.get('/db/_changes?since=2001-01-01T00:00:00Z')).json.results.length).to.equal(1)
    expect((await node.get('/db/_changes?since=2999-01-01T00:00:00Z')).json.results).to.deep.equal([])
    expect((await node.get('/db/_changes?since=2025-02-30T00:00:00Z')).status).to.equal(400)
  })

  it('shows revisions with characters that JSON has to escape', async () => {
    const revisions = ['1-quo"te', '1-back\\slash', '1-new\nline', '1-snow\u2603']
    await node.post('/db/_bulk_docs', {
      new_edits: false, docs: revisions.map((_rev, at) => ({ _id: `d${at}`, _rev })),
    })
    const { results } = (await node.get('/db/_changes')).json
    expect(results.map(({ changes }: { changes: unknown }) => changes)).to.deep.equal(revisions.map(rev => [{ rev }]))
  })

  it('has a tag that changes with the database, and answers 304 and HEAD', async () => {
    await write('a')
    const { etag } = (await node.get('/db/_changes')).headers
    expect((await node.get('/db/_changes?limit=1', { 'if-none-match': etag! })).status).to.equal(304)
    const head = await node.request('HEAD', '/db/_changes')
    expect([head.status, head.headers['etag'], head.text]).to.deep.equal([200, etag, ''])
    await write('b')
    expect((await node.get('/db/_changes', { 'if-none-match': etag! })).status).to.equal(200)
  })

  it('ends a longpoll with the first changes, or empty after its timeout', async () => {
    await write('a')
    const { last_seq: since } = (await node.get('/db/_changes')).json
    const waiting = node.get(`/db/_changes?feed=longpoll&since=${since}`)
    await node.clock.advance(1000)
    await write('b')
    expect(masked((await node.during(waiting)).text)).to.equal(
      `{"results":[\n\n${row('b')}\n],\n"last_seq":"S","pending":0}\n\n`,
    )
    const empty = await node.during(node.get('/db/_changes?feed=longpoll&since=now&timeout=200'))
    expect(masked(empty.text)).to.equal('{"results":[\n\n\n],\n"last_seq":"S","pending":0}\n\n')
    expect(masked((await node.get('/db/_changes?feed=longpoll')).text)).to.contain(`${row('a')},\r\n${row('b')}\n],`)
  })

  it('continues until its timeout, its limit or its client ends it', async () => {
    await write('a')
    const timed = node.get('/db/_changes?feed=continuous&timeout=5000')
    await node.clock.advance(4000)
    await write('b')
    await node.clock.advance(4000)
    await write('c')
    expect(masked((await node.during(timed)).text)).to.equal(
      `${['a', 'b', 'c'].map(row).join('\n')}\n{"last_seq":"S","pending":0}\n\n`,
    )
    expect(masked((await node.get('/db/_changes?feed=live&limit=2')).text)).to.equal(
      `${row('a')}\n${row('b')}\n{"last_seq":"S","pending":1}\n\n`,
    )
    expect(masked((await node.get('/db/_changes?feed=continuous&limit=0')).text)).to.equal(
      '{"last_seq":"S","pending":3}\n\n',
    )
  })

  it('sends heartbeats while nothing happens, and has no timeout then', async () => {
    const beating = node.get('/db/_changes?feed=continuous&heartbeat=1000&timeout=10&limit=1')
    await node.clock.advance(3500)
    await write('a')
    expect(masked((await node.during(beating)).text)).to.equal(`\n\n\n\n${row('a')}\n{"last_seq":"S","pending":0}\n\n`)
    const source = node.get('/db/_changes?feed=eventsource&heartbeat=1000&limit=2')
    await node.clock.advance(2500)
    await write('b')
    const answer = await node.during(source)
    expect(answer.headers).to.include({ 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
    const beat = 'event: heartbeat\ndata: \n\n'
    expect(masked(answer.text)).to.equal(`data: ${row('a')}\nid: "S"\n\n${beat}${beat}data: ${row('b')}\nid: "S"\n\n\n`)
  })

  /**
   * Returns the times at which a continuous feed sends bytes until `untilMs`. All times are milliseconds since its
   * start.
   */
  async function byteTimes(query: string, writes: readonly number[], untilMs: number): Promise<number[]> {
    const leaving = new AbortController()
    const beganAt = node.clock.monotonic()
    const { chunks } = await node.during(node.open(
      'GET', `/db/_changes?feed=continuous&${query}`, { authorization: adminAuthorization }, undefined, leaving.signal,
    ))
    const times: number[] = []
    const reading = (async () => {
      for await (const chunk of chunks) if (chunk.length > 0) times.push(node.clock.monotonic() - beganAt)
    })()
      .catch(() => {})
    for (let passed = node.clock.monotonic() - beganAt; passed < untilMs; passed += 1) {
      if (writes.includes(passed)) await write(`w${passed}`)
      await node.clock.advance(1)
    }
    leaving.abort()
    await reading
    return times
  }

  it('sends a heartbeat one interval after the last byte, whatever rows went out in between', async () => {
    const times = await byteTimes('heartbeat=1000', [300, 1100, 1900, 1950, 3400], 6000)
    const gaps = times.map((time, index) => time - (times[index - 1] ?? 0))
    expect(Math.max(...gaps), `bytes at ${times.join()}`).to.be.at.most(1000)
    expect(times.length, `bytes at ${times.join()}`).to.be.within(9, 12)
  })

  it('sends short heartbeats without drift', async () => {
    const times = (await byteTimes('heartbeat=50', [], 5000)).slice(1)
    expect(times.length, `bytes at ${times.join()}`).to.be.within(98, 101)
  })

  it('sends few heartbeats when many feeds ask for many', async () => {
    const leaving = new AbortController()
    let beats = 0
    const open = async (): Promise<void> => {
      const { chunks } = await node.during(node.open(
        'GET', '/db/_changes?feed=continuous&heartbeat=1', { authorization: adminAuthorization }, undefined,
        leaving.signal,
      ))
      for await (const chunk of chunks) beats += chunk.length
    }
    const reading = Array.from({ length: 300 }, () => open().catch(() => {}))
    await node.clock.advance(100)
    beats = 0
    await node.clock.advance(1000)
    leaving.abort()
    await Promise.all(reading)
    expect(beats).to.be.within(4_000, 6_000)
  })

  it('sends heartbeats while rows come that its filter leaves out', async () => {
    const writes = Array.from({ length: 10 }, (_, index) => 100 + index * 400)
    const times = await byteTimes('heartbeat=1000&filter=_design', writes, 4500)
    expect(times.length, `bytes at ${times.join()}`).to.be.within(4, 6)
  })

  it('shows documents, tombstones, conflicts and leaves', async () => {
    await node.post('/db/_bulk_docs', { new_edits: false, docs: [
      { _id: 'd', _rev: '2-cc', _revisions: { start: 2, ids: ['cc', 'aa'] }, v: 'c' },
      { _id: 'd', _rev: '2-bb', _revisions: { start: 2, ids: ['bb', 'aa'] }, v: 'b' },
      { _id: 'd', _rev: '3-ee', _revisions: { start: 3, ids: ['ee', 'dd', 'aa'] }, _deleted: true },
    ] })
    const get = async (query: string): Promise<any> => (await node.get(`/db/_changes?${query}`)).json.results[0]
    expect((await get('style=all_docs')).changes).to.deep.equal([{ rev: '2-cc' }, { rev: '2-bb' }, { rev: '3-ee' }])
    expect(await get('include_docs=true&conflicts=true')).to.deep.include({
      changes: [{ rev: '2-cc' }], doc: { _id: 'd', _rev: '2-cc', v: 'c', _conflicts: ['2-bb'] },
    })
    const { rev } = (await node.put('/db/gone', { n: 1 })).json
    await node.put('/db/gone', { _rev: rev, _deleted: true, why: 'moved' })
    const gone = (await node.get('/db/_changes?include_docs=true')).json.results[1]
    expect([gone.deleted, gone.doc._deleted, gone.doc.why]).to.deep.equal([true, true, 'moved'])
  })

  it('chooses rows by id, by design and by selector', async () => {
    await write('a', 'bb', 'ccc')
    await node.put('/db/_design/x', {})
    const post = async (query: string, body: object): Promise<string[]> =>
      (await node.post(`/db/_changes?${query}`, body)).json.results.map((result: any) => result.id)
    expect(await post('filter=_doc_ids', { doc_ids: ['ccc', 'none', 'a'] })).to.deep.equal(['a', 'ccc'])
    expect((await node.get('/db/_changes?filter=_doc_ids&doc_ids=["bb"]')).json.results.length).to.equal(1)
    expect(await post('filter=_design', {})).to.deep.equal(['_design/x'])
    expect(await post('filter=_selector', { selector: { n: { $gte: 2 } } })).to.deep.equal(['bb', 'ccc'])
    expect(await post('filter=_selector&limit=1', { selector: { n: { $gte: 2 } } })).to.deep.equal(['bb'])
    const { json: { results, pending } } = await node.post(
      '/db/_changes?filter=_selector&include_docs=true&limit=1', { selector: { n: 2 }, fields: ['n'] },
    )
    expect([results[0].doc, pending]).to.deep.equal([{ n: 2 }, 2])
    expect(await post('', { doc_ids: ['a'] })).to.have.length(4)
  })

  it('keeps every digit of numbers in projected documents', async () => {
    await node.put('/db/big', '{"n":9,"a":[12345678901234567890,1.0,1e3,-0.50],"b":"1.0"}')
    const { text } = await node.post('/db/_changes?filter=_selector&include_docs=true', {
      selector: { n: 9 }, fields: ['a', 'b'],
    })
    expect(text).to.contain('"doc":{"a":[12345678901234567890,1.0,1e3,-0.50],"b":"1.0"}')
  })

  it('cuts included documents down, content of attachments with them', async () => {
    await node.put('/db/doc', {
      n: 2, other: 1,
      _attachments: { a: { data: Buffer.from('content').toString('base64'), content_type: 'image/png' } },
    })
    const doc = async (fields: readonly string[], query = ''): Promise<unknown> => {
      const target = `/db/_changes?filter=_selector&include_docs=true${query}`
      return (await node.post(target, { selector: { n: 2 }, fields })).json.results[0].doc
    }
    const {
      _attachments: { a: stub },
    } = await doc(['_attachments']) as { readonly _attachments: { readonly a: object } }
    expect(stub).to.include({ stub: true, length: 7 })
    const { length, stub: _, ...rest } = stub as { readonly length: number; readonly stub: boolean }
    const whole = { ...rest, data: Buffer.from('content').toString('base64') }
    expect(await doc(['n', '_attachments'], '&attachments=true')).to.deep.equal({ n: 2, _attachments: { a: whole } })
    expect(await doc(['_attachments'], '&attachments=true')).to.deep.equal({ _attachments: { a: whole } })
    expect(await doc(['n'], '&attachments=true')).to.deep.equal({ n: 2 })
  })

  it('applies a selector to every leaf with style=all_docs', async () => {
    await node.post('/db/_bulk_docs', {
      new_edits: false, docs: [{ _id: 'd', _rev: '1-aa', n: 1 }, { _id: 'd', _rev: '1-bb', n: 2 }],
    })
    const changes = async (style: string): Promise<any> => {
      const answer = await node.post(`/db/_changes?filter=_selector&style=${style}`, { selector: { n: 1 } })
      return answer.json.results.map((result: any) => result.changes)
    }
    expect(await changes('main_only')).to.deep.equal([])
    expect(await changes('all_docs')).to.deep.equal([[{ rev: '1-aa' }]])
  })

  it('keeps waiting when a filter rejects a change, and its last token covers that change', async () => {
    const waiting = node.post('/db/_changes?feed=longpoll&filter=_selector&timeout=1000', { selector: { n: 99 } })
    await node.clock.advance(500)
    await write('a')
    const { results, last_seq: since } = (await node.during(waiting)).json
    expect(results).to.deep.equal([])
    expect((await node.get(`/db/_changes?since=${since}`)).json.results).to.deep.equal([])
  })

  it('ends after its timeout although changes come that its filter leaves out', async () => {
    const waiting = node.get('/db/_changes?feed=continuous&filter=_design&timeout=1000')
    const begin = node.clock.monotonic()
    let endedAt = Infinity
    const ended = waiting.then(() => { endedAt = node.clock.monotonic() })
    for (let step = 1; step <= 20; step++) {
      await node.clock.advance(100)
      if (step % 4 === 0) await write(`d${step}`)
    }
    await node.during(ended)
    expect(endedAt - begin).to.be.within(1000, 1200)
  })

  it('leaves out tokens by seq_interval', async () => {
    await write('a', 'b', 'c')
    const sequences = (await node.get('/db/_changes?seq_interval=2&limit=3')).json.results.map((result: any) =>
      result.seq === null)
    expect(sequences).to.deep.equal([true, false, true])
    const { results } = (await node.get('/db/_changes?limit=9007199254740991&seq_interval=9007199254740991')).json
    expect(results).to.have.length(3)
  })

  it('refuses what it cannot read', async () => {
    await node.put('/db/_design/f', {
      filters: { odd: 'function(doc) { return true }' }, views: { by: { map: 'function(doc) {}' } },
    })
    const refused: readonly [string, number, string][] = [
      ['feed=sometimes', 400, 'Supported `feed` types: normal, continuous, live, longpoll, eventsource'],
      ['since=yesterday', 400, "Malformed sequence supplied in 'since' parameter."],
      ['since=%22now%22', 400, "Malformed sequence supplied in 'since' parameter."],
      ['since=', 400, "Malformed sequence supplied in 'since' parameter."],
      ['since=5', 400, "Malformed sequence supplied in 'since' parameter."],
      ['heartbeat=0', 400, 'The heartbeat value should be a positive integer (in milliseconds).'],
      ['heartbeat=often', 400, 'Invalid heartbeat value. Expecting a positive integer value (in milliseconds).'],
      ['seq_interval=0', 400, 'invalid_seq_interval'],
      ['filter=_unknown', 400, 'unknown builtin filter name'],
      ['filter=odd', 400, '`filter` must be of the form `designname/filtername`'],
      ['filter=f/none', 404, 'missing json key: none'],
      ['filter=g/odd', 404, 'missing'],
      ['filter=%FF/odd', 400, '`filter` must be valid UTF-8.'],
      ['filter=f/%FF', 400, '`filter` must be valid UTF-8.'],
      ['filter=_view&view=%FF/by', 400, '`view` must be valid UTF-8.'],
      ['filter=_view', 400, '`view` filter parameter is not provided.'],
      ['filter=_view&view=f/none', 404, 'missing json key: none'],
      ['filter=_doc_ids&doc_ids=[1]', 400, '`doc_ids` filter parameter is not a list of doc ids.'],
      ['filter=_selector', 400, 'Selector must be specified in POST payload'],
    ]
    for (const [query, status, reason] of refused) {
      const answer = await node.get(`/db/_changes?${query}`)
      expect([answer.status, answer.json.reason], query).to.deep.equal([status, reason])
    }
    for (const query of ['limit=many', 'limit=-1', 'timeout=soon', 'style=fancy']) {
      expect((await node.get(`/db/_changes?${query}`)).status, query).to.equal(400)
    }
    for (const query of ['filter=_doc_ids', 'filter=_selector']) {
      const answer = await node.post(`/db/_changes?${query}`, '', { 'content-type': 'application/json' })
      expect([answer.status, answer.json.reason], query).to.deep.equal([400, 'invalid UTF-8 JSON'])
    }
    const unknownOperator = { selector: { n: { $bigger: 1 } } }
    expect((await node.post('/db/_changes?filter=_selector', unknownOperator)).json.reason).to.equal(
      'Invalid operator: $bigger',
    )
    expect((await node.post('/db/_changes?filter=_selector', { selector: {}, fields: [1] })).json.reason).to.equal(
      'Invalid JSON for field spec: 1',
    )
    const put = await node.put('/db/_changes', {})
    expect([put.status, put.headers['allow'], put.json.reason]).to.deep.equal([
      405, 'GET,HEAD,POST', 'Only GET,POST,HEAD allowed',
    ])
  })
})

describe('parameters of the changes feed', () => {
  let node: MemoryNode
  before(async () => {
    node = new MemoryNode()
    await node.put('/db?q=1')
    for (const id of ['a', 'b', 'c']) await node.put(`/db/${id}`, {})
  })
  after(() => node.stop())

  const ids = async (query: string): Promise<unknown> =>
    (await node.get(`/db/_changes?${query}`)).json.results.map((row: any) => row.id)

  it('start at the newest change in descending order, whatever since is', async () => {
    for (const since of ['bad', 'now', '2']) {
      expect(await ids(`descending=true&since=${since}&limit=2`), since).to.deep.equal(['c', 'b'])
    }
  })

  it('may have names in capitals, and the later of since and Last-Event-ID counts', async () => {
    expect(await ids('LIMIT=1&Descending=true')).to.deep.equal(['c'])
    const [first, second] = (await node.get('/db/_changes')).json.results.map((row: any) => encodeURIComponent(row.seq))
    expect(await ids(`since=${second}&Last-Event-ID=${first}`)).to.deep.equal(['b', 'c'])
    expect(await ids(`Last-Event-ID=${first}&since=${second}`)).to.deep.equal(['c'])
  })

  it('that are not UTF-8 are an error only for the code that reads them', async () => {
    expect(await ids('other=%ff')).to.have.length(3)
    expect((await node.get('/db/_changes?since=%ff')).json.reason).to.equal(
      "Malformed sequence supplied in 'since' parameter.",
    )
    expect((await node.get('/db/_changes?filter=_doc_ids&doc_ids=[%22%ff%22]')).json.reason).to.equal(
      'invalid UTF-8 JSON',
    )
    expect((await node.get('/db/_all_docs?key=%22%ff%22')).json.reason).to.equal('invalid UTF-8 JSON')
  })
})

describe('waiting feeds', () => {
  it('end well when their database is deleted', async () => {
    const node = new MemoryNode()
    await node.put('/db?q=2')
    const feed = node.get('/db/_changes?feed=continuous&heartbeat=60000')
    await node.clock.advance(10)
    await node.delete('/db')
    const { text, cut } = await node.during(feed)
    expect([text.includes('"last_seq"'), cut]).to.deep.equal([true, false])
    await node.stop()
  })

  it('end well when the user is no longer a member of the database', async () => {
    const node = new MemoryNode()
    await node.put('/db?q=2')
    await node.put('/db/_security', {})
    const path = '/db/_changes?feed=continuous&heartbeat=60000'
    const [strangers, members] = [node.get(path, { authorization: '' }), node.get(path)]
    await node.clock.advance(10)
    await node.put('/db/_security', { x: 1 })
    await node.put('/db/before', {})
    await node.clock.advance(10)
    await node.put('/db/_security', { members: { names: ['ann'] } })
    await node.put('/db/after', {})
    const { text, cut } = await node.during(strangers)
    expect([text.includes('"before"'), text.includes('"after"'), text.includes('"last_seq"'), cut])
      .to.deep.equal([true, false, true, false])
    await node.stop()
    expect((await members).text).to.contain('"after"')
  })

  for (const mode of ['true', 'nolb']) {
    it(`end well when the maintenance mode becomes ${mode}, and begin no wait then`, async () => {
      const node = new MemoryNode()
      await node.put('/db?q=2')
      const waiting = node.get('/db/_changes?feed=continuous&heartbeat=60000')
      await node.clock.advance(1000)
      await node.put('/_node/_local/_config/couchdb/maintenance_mode', JSON.stringify(mode), {
        'content-type': 'application/json',
      })
      expect((await node.during(waiting)).text).to.contain('"last_seq"')
      const begun = await node.during(node.get('/db/_changes?feed=longpoll&since=now&heartbeat=60000'), 50)
      expect(begun.json.results).to.deep.equal([])
      await node.stop()
    })
  }

  it('end well when the node stops', async () => {
    const node = new MemoryNode()
    await node.put('/db?q=2')
    const feed = node.get('/db/_changes?feed=continuous&heartbeat=60000')
    await node.clock.advance(10)
    await node.stop()
    expect((await feed).text).to.contain('"last_seq"')
  })

  it('do not count as running requests, and have a limit of their own', async () => {
    const node = new MemoryNode({ http: { concurrentRequestsMax: 2, feedsMax: 5 } })
    await node.put('/db?q=2')
    const feeds: ReturnType<MemoryNode['get']>[] = []
    for (let i = 0; i < 5; i++) {
      feeds.push(node.get('/db/_changes?feed=continuous&limit=1'))
      await node.clock.advance(10)
    }
    const sixth = await node.get('/db/_changes?feed=continuous')
    expect([sixth.status, sixth.headers['retry-after']]).to.deep.equal([503, '1'])
    expect((await node.put('/db/a', {})).status).to.equal(201)
    for (const feed of feeds) expect((await node.during(feed)).text).to.contain('"id":"a"')
    expect(node.coordinator.watchedReplicas).to.equal(0)
    await node.stop()
  })
})
