import { expect } from 'chai'
import fc from 'fast-check'
import { compareUtf8 } from '@sectional/core'
import { MemoryNode, type Answer } from '../memory-node.ts'

const ids = ['_design/a', '_design/b', 'a', 'b', 'c', 'd', 'e', 'é', '😀', '￿']
const sorted = ids.toSorted(compareUtf8)

describe('_all_docs', () => {
  let node: MemoryNode
  before(async () => {
    node = new MemoryNode()
    await node.put('/db?q=4')
    await node.post('/db/_bulk_docs', { docs: [...ids, 'gone'].map(_id => ({ _id, n: _id.length })) })
    const rev = (await node.get('/db/gone')).json._rev
    await node.delete(`/db/gone?rev=${rev}`)
  })
  after(() => node.stop())

  it('frames its rows as CouchDB does', async () => {
    const { text } = await node.get('/db/_all_docs?limit=2&startkey=%22a%22&update_seq=false')
    const row = (id: string) => `{"id":"${id}","key":"${id}","value":{"rev":"1-[0-9a-f]{32}"}}`
    expect(text).to.match(
      new RegExp(`^\\{"total_rows":10,"offset":2,"rows":\\[\\r\\n${row('a')},\\r\\n${row('b')}\\r\\n\\]\\}\\n$`),
    )
    expect((await node.get('/db/_all_docs?key=%22none%22')).text).to.contain('"rows":[\r\n\r\n]}\n')
  })

  it('begins and ends at document ids where no keys say otherwise', async () => {
    const ids = async (path: string): Promise<string[]> => (await node.get(path)).json.rows.map((row: any) => row.id)
    expect(await ids('/db/_all_docs?startkey_docid=c&limit=2')).to.deep.equal(['c', 'd'])
    expect(await ids('/db/_all_docs?start_key_doc_id=d&end_key_doc_id=e')).to.deep.equal(['d', 'e'])
    expect(await ids('/db/_all_docs?endkey_docid=b&startkey=%22a%22&inclusive_end=false')).to.deep.equal(['a'])
    expect(await ids('/db/_all_docs?startkey=%22d%22&startkey_docid=a&limit=1')).to.deep.equal(['d'])
    expect(await ids('/db/_all_docs?startkey_docid=b&descending=true&limit=2')).to.deep.equal(['b', 'a'])
    expect(await ids('/db/_design_docs?startkey_docid=_design/b')).to.deep.equal(['_design/b'])
    await node.put('/db/_local/l1', {})
    await node.put('/db/_local/l2', {})
    expect(await ids('/db/_local_docs?startkey_docid=_local/l2')).to.deep.equal(['_local/l2'])
    const posted = await node.post('/db/_all_docs/queries', {
      queries: [{ startkey_docid: 'e', limit: 1 }, { keys: ['a'], startkey_docid: 'e' }],
    })
    expect(posted.json.results.map((list: any) => list.rows.map((row: any) => row.id))).to.deep.equal([['e'], ['a']])
    const refused = await node.post('/db/_all_docs', { endkey_docid: 5 })
    expect([refused.status, refused.json.reason]).to.deep.equal([400, '`end_key_docid` must be a string.'])
  })

  it('selects what a loop over all ids would, with exact offsets', async () => {
    const key = fc.constantFrom('', '_design/b', 'b', 'bb', 'e', 'z', '￿')
    const parameters = fc.record({
      start: fc.option(key), end: fc.option(key), descending: fc.boolean(), inclusive: fc.boolean(),
      skip: fc.nat(4), limit: fc.option(fc.nat(5)),
    })
    await fc.assert(fc.asyncProperty(parameters, async ({ start, end, descending, inclusive, skip, limit }) => {
      const query = new URLSearchParams({
        ...(start === null ? {} : { startkey: JSON.stringify(start) }),
        ...(end === null ? {} : { end_key: JSON.stringify(end) }),
        descending: String(descending), inclusive_end: String(inclusive), skip: String(skip),
        ...(limit === null ? {} : { limit: String(limit) }),
      })
      const all = descending ? sorted.toReversed() : sorted
      const sign = descending ? -1 : 1
      const before = all.filter(id => start !== null && compareUtf8(id, start) * sign < 0)
      const inRange = all.slice(before.length)
        .filter(id => end === null || compareUtf8(id, end) * sign < 0 || (id === end && inclusive))
      const answer = (await node.get(`/db/_all_docs?${query}`)).json
      expect(answer.rows.map((row: any) => row.id)).to.deep.equal(
        inRange.slice(skip, limit === null ? undefined : skip + limit),
      )
      expect(answer.total_rows).to.equal(10)
      expect(answer.offset).to.equal(Math.min(10, before.length + skip))
    }), { numRuns: 60 })
  })

  it('give the offset of an empty range, and of keys that are not strings', async () => {
    const offset = async (query: string): Promise<unknown> => {
      const { offset, rows } = (await node.get(`/db/_all_docs?${query}`)).json
      return [offset, rows.length]
    }
    expect(await offset('startkey=%22d%22&endkey=%22b%22')).to.deep.equal([5, 0])
    expect(await offset('descending=true&startkey=%22b%22&endkey=%22d%22')).to.deep.equal([6, 0])
    expect(await offset('endkey=5')).to.deep.equal([0, 0])
    expect(await offset('descending=true&startkey=5')).to.deep.equal([10, 0])
    expect(await offset('key=%22b%22&inclusive_end=FALSE')).to.deep.equal([3, 0])
    expect(await offset('key=%22b%22&endkey=%22d%22')).to.deep.equal([3, 3])
  })

  it('treat a single key of a query as a range', async () => {
    const queries = [{ keys: ['b'] }, { keys: ['none'] }, { keys: ['gone'] }, { keys: ['b', 'none'] }]
    const answer = await node.post('/db/_all_docs/queries', JSON.stringify({ queries }), {
      'content-type': 'text/plain',
    })
    expect(answer.json.results.map(({ offset, rows }: any) => [offset, rows.length])).to.deep.equal([
      [3, 1], [7, 0], [7, 0], [null, 2],
    ])
  })

  it('picks keys in the given order, with tombstones and unknown ones', async () => {
    const answer = (await node.post('/db/_all_docs', { keys: ['d', 'none', 'gone', 5, 'd'], include_docs: true })).json
    expect([answer.total_rows, answer.offset]).to.deep.equal([10, null])
    expect(answer.rows[0].doc).to.deep.include({ _id: 'd', n: 1 })
    expect(answer.rows[1]).to.deep.equal({ key: 'none', error: 'not_found' })
    expect(answer.rows[2].value.deleted).to.equal(true)
    expect(answer.rows[2].doc).to.equal(null)
    expect(answer.rows[3]).to.deep.equal({ key: 5, error: 'not_found' })
    expect(answer.rows[4].id).to.equal('d')
    const some = (await node.post('/db/_all_docs?descending=true', { keys: ['a', 'b', 'c'], skip: 1, limit: 1 })).json
    expect(some.rows.map((row: any) => row.id)).to.deep.equal(['b'])
    expect((await node.post('/db/_all_docs', { keys: [], update_seq: true })).json).to.deep.include({
      update_seq: null, rows: [],
    })
  })

  it('refuses parameters it cannot read', async () => {
    const refusals: readonly [string, string, string][] = [
      ['limit=-1', 'query_parse_error', 'Invalid value for positive integer: "-1"'],
      ['limit=ten', 'query_parse_error', 'Invalid value for integer: "ten"'],
      ['descending=perhaps', 'query_parse_error', 'Invalid boolean parameter: "perhaps"'],
      ['startkey=unquoted', 'bad_request', 'invalid UTF-8 JSON'],
      ['keys=%22a%22', 'bad_request', '`keys` parameter must be an array.'],
      ['reduce=true', 'query_parse_error', 'Reduce is invalid for map-only views.'],
      ['group_level=1', 'query_parse_error', 'Invalid use of grouping on a map view.'],
      [
        'group=false&group_level=1', 'query_parse_error',
        "Can't specify group=false and group_level>0 at the same time",
      ],
      ['stable=1', 'query_parse_error', 'Invalid value for `stable`.'],
      ['update=soon', 'query_parse_error', 'Invalid value for `update`.'],
      ['partition=red', 'query_parse_error', '`partition` parameter is not supported on this db'],
      ['startkey_docid=%FF', 'query_parse_error', '`start_key_docid` must be valid UTF-8.'],
      ['endkey_docid=a%C3', 'query_parse_error', '`end_key_docid` must be valid UTF-8.'],
      [
        'keys=[%22b%22]&key=%22a%22', 'query_parse_error',
        '`keys` is incompatible with `key`, `start_key` and `end_key`',
      ],
    ]
    for (const [query, error, reason] of refusals) {
      expect((await node.get(`/db/_all_docs?${query}`)).json).to.deep.equal({ error, reason })
    }
    for (const search of ['keys=[%22a%22]&key=%22a%22', 'keys=[%22a%22]&startkey=%22a%22']) {
      expect((await node.get(`/db/_all_docs?${search}`)).json.rows).to.have.length(1)
    }
    expect((await node.get('/db/_all_docs?partition=_p')).json.error).to.equal('illegal_partition')
    for (const name of ['limit', 'skip']) {
      expect((await node.post('/db/_all_docs', { [name]: '1' })).json.reason).to.equal('Invalid value for integer: "1"')
    }
    expect((await node.post('/db/_all_docs', { partition: 'red' })).json.reason).to.equal(
      '`partition` parameter is not supported on this db',
    )
    expect((await node.post('/db/_all_docs/queries', { queries: [{ keys: 'a' }] })).json).to.deep.equal({
      error: 'query_parse_error', reason: '`keys` must be an array of strings.',
    })
    expect((await node.post('/db/_all_docs', { keys: 'a' })).json.reason).to.equal(
      '`keys` body member must be an array.',
    )
    expect((await node.post('/db/_all_docs', [])).json.reason).to.equal('Request body must be a JSON object')
    expect((await node.post('/db/_all_docs', '{}')).status).to.equal(415)
  })

  it('accepts very large limits, and ignores valid parameters of views', async () => {
    for (const query of [
      'limit=9007199254740991&skip=1', `limit=${'9'.repeat(400)}&skip=1`,
      'reduce=false&group=false&stable=true&update=lazy&skip=1',
    ]) {
      expect((await node.get(`/db/_all_docs?${query}`)).json.rows.map((row: any) => row.id)).to.include('a')
    }
  })

  it('accepts numbers with a sign, as Erlang reads them', async () => {
    const rowsOf = async (query: string): Promise<unknown> =>
      (await node.get(`/db/_all_docs?${query}`)).json.rows.map((row: any) => row.id)
    expect(await rowsOf('limit=%2B1&skip=-0')).to.deep.equal(await rowsOf('limit=1'))
    expect((await node.get('/db/_all_docs?limit=+1')).json.reason).to.equal('Invalid value for integer: " 1"')
  })

  it('has no more rows than the options allow, like the lists of design documents and local documents', async () => {
    const refusal = (max: number) =>
      ({ error: 'query_parse_error', reason: `Limit is too large, must not exceed ${max}` })
    await node.put('/parts?partitioned=true')
    for (const id of ['p:1', 'p:2', 'p:3', '_design/a', '_design/b', '_design/c', '_local/a', '_local/b', '_local/c']) {
      expect((await node.put(`/parts/${id}`, {})).status).to.equal(201)
    }
    node.configuration.put('query_server_config', 'query_limit', '2')
    node.configuration.put('query_server_config', 'partition_query_limit', '1')
    for (const [path, max] of [
      ['_all_docs?', 2], ['_design_docs?', 2], ['_local_docs?', 2], ['_partition/p/_all_docs?', 1],
      ['_all_docs?partition=p&', 1],
    ] as const) {
      expect((await node.get(`/parts/${path}`)).json.rows, path).to.have.length(max)
      expect((await node.get(`/parts/${path}limit=${max}`)).json.rows, path).to.have.length(max)
      expect((await node.get(`/parts/${path}limit=${max + 1}`)).json, path).to.deep.equal(refusal(max))
      const target = `/parts/${path.replace('?', '/queries?')}`
      expect((await node.post(target, { queries: [{ limit: max + 1 }] })).json, path).to.deep.equal(refusal(max))
      expect((await node.post(target, { queries: [{}] })).json.results[0].rows, path).to.have.length(max)
    }
    expect((await node.post('/parts/_all_docs', { keys: ['p:1', 'p:2', 'p:3'] })).json.rows).to.have.length(2)
    for (const name of ['query_limit', 'partition_query_limit']) {
      node.configuration.put('query_server_config', name, 'infinity')
    }
  })

  it('lets the query string win over the body', async () => {
    expect((await node.post('/db/_all_docs?limit=1', { limit: 3, startkey: 'b' })).json.rows.map((row: any) =>
      row.id)).to.deep.equal(['b'])
  })

  it('ignores groups and several keys of the query string of several queries', async () => {
    const search = 'group=true&keys=[%22a%22,%22b%22]'
    const answer = await node.post(`/db/_all_docs/queries?${search}`, { queries: [{ limit: 1 }] })
    expect(answer.json.results).to.deep.equal([(await node.get('/db/_all_docs?limit=1')).json])
  })

  it('answers several queries, with the query string as defaults', async () => {
    const answer = await node.post('/db/_all_docs/queries?limit=2', {
      queries: [{}, { limit: 1, key: 'c' }, { keys: ['a'] }],
    })
    expect(answer.json.results.map((result: any) => result.rows.map((row: any) => row.id))).to.deep.equal([
      ['_design/a', '_design/b'], ['c'], ['a'],
    ])
    expect((await node.post('/db/_all_docs/queries', { queries: [] })).text).to.equal('{"results":[\r\n\r\n]}\n')
    expect((await node.post('/db/_all_docs/queries', {})).json.reason).to.equal(
      'POST body must include `queries` parameter.',
    )
  })

  it('carries a tag that holds until the database changes', async () => {
    const first = await node.get('/db/_all_docs?limit=1')
    const condition = { 'if-none-match': first.headers['etag']! }
    expect((await node.get('/db/_all_docs?limit=1', condition)).status).to.equal(304)
    expect((await node.get('/db/_all_docs?limit=2', condition)).status).to.equal(200)
    await node.put('/db/_local/x', {})
    const rev = (await node.get('/db/a')).json._rev
    await node.put('/db/a', { _rev: rev })
    expect((await node.get('/db/_all_docs?limit=1', condition)).status).to.equal(200)
  })

  it('lists design documents with their own total and offset', async () => {
    const all = (await node.get('/db/_design_docs')).json
    expect([all.total_rows, all.offset, all.rows.map((row: any) => row.id)]).to.deep.equal([
      2, 0, ['_design/a', '_design/b'],
    ])
    expect((await node.get('/db/_design_docs?skip=1')).json).to.deep.include({ total_rows: 2, offset: 1 })
    expect((await node.get('/db/_design_docs?skip=5')).json).to.deep.include({ total_rows: 2, offset: 2 })
    expect((await node.get('/db/_design_docs?descending=true&limit=1')).json.rows[0].id).to.equal('_design/b')
    expect((await node.get('/db/_design_docs?startkey=%22z%22')).json).to.deep.include({ total_rows: 2, offset: 2 })
    const picked = (await node.post('/db/_design_docs', { keys: ['_design/a', 'a', '_design/none', 5] })).json.rows
    expect(picked.map((row: any) => row.error ?? row.id), 'others are not listed, not even as unknown').to.deep.equal([
      '_design/a', 'not_found',
    ])
  })

  it('sends long lists in pieces, and breaks the connection when a piece fails', async () => {
    await node.put('/long?q=1')
    await node.post('/long/_bulk_docs', {
      docs: Array.from({ length: 300 }, (_, i) => ({ _id: `doc${i}`, text: 'x'.repeat(1000) })),
    })
    const long = await node.get('/long/_all_docs?include_docs=true')
    expect(long.chunks).to.be.above(3)
    expect(long.json.rows).to.have.length(300)
    const broken = new MemoryNode({
      wrap: coordinator => ({
        ...coordinator, listDocuments: async () => ({ total: 1000, offset: 0, rows: failingRows() }),
      }),
    })
    await broken.put('/db')
    const cut = await broken.get('/db/_all_docs')
    expect([cut.status, cut.cut, cut.json]).to.deep.equal([200, true, undefined])
    await broken.stop()
  })
})

async function* failingRows() {
  yield Array.from({ length: 2000 }, (_, i) => ({ id: `doc${i}`, revision: '1-a' }))
  throw new Error('a shard went away')
}

describe('_local documents', () => {
  let node: MemoryNode
  beforeEach(async () => {
    node = new MemoryNode()
    await node.put('/db?q=2')
  })
  afterEach(() => node.stop())

  it('count 0-N from the revision that is named, and compare nothing', async () => {
    expect((await node.put('/db/_local/mark', { at: 1 })).json).to.deep.equal({
      ok: true, id: '_local/mark', rev: '0-1',
    })
    expect((await node.put('/db/_local/mark', { at: 2, _rev: '0-1' })).json.rev).to.equal('0-2')
    expect((await node.put('/db/_local%2Fmark?rev=0-7', { at: 3 })).json.rev).to.equal('0-8')
    expect((await node.put('/db/_local/mark', { at: 4 })).json.rev).to.equal('0-1')
    expect((await node.get('/db/_local%2Fmark')).json).to.deep.equal({ _id: '_local/mark', _rev: '0-1', at: 4 })
    expect((await node.put('/db/_local/mark', { _rev: '1-abc' })).json.reason).to.equal('Invalid rev format')
    expect((await node.delete('/db/_local/mark')).json.rev).to.equal('0-0')
    expect((await node.delete('/db/_local/mark')).status).to.equal(404)
    expect((await node.get('/db/_local/mark')).json.reason).to.equal('missing')
  })

  it('drop attachments in the body, and refuse attachment paths', async () => {
    expect((await node.put('/db/_local/a', { _attachments: { f: { data: '' } } })).status).to.equal(201)
    expect((await node.put('/db/_local/a/f', 'x')).json.reason).to.equal('_local documents do not accept attachments.')
    expect((await node.get('/db/_local')).json.reason).to.equal('Invalid _local document id.')
    expect((await node.get('/db/_local/')).status).to.equal(400)
  })

  it('are listed without totals, by range and by keys', async () => {
    for (const name of ['a', 'b', 'c', 'd']) await node.put(`/db/_local/${name}`, { name })
    await node.put('/db/plain', {})
    const list = async (query: string) =>
      (await node.get(`/db/_local_docs?${query}`)).json.rows.map((row: any) => row.id)
    expect((await node.get('/db/_local_docs?limit=1&include_docs=true')).json).to.deep.equal({
      total_rows: null, offset: null,
      rows: [{
        id: '_local/a', key: '_local/a', value: { rev: '0-1' }, doc: { _id: '_local/a', _rev: '0-1', name: 'a' },
      }],
    })
    expect(await list('startkey=%22_local/b%22&endkey=%22_local/c%22')).to.deep.equal(['_local/b', '_local/c'])
    expect(await list('startkey=%22a%22')).to.deep.equal([])
    expect(await list('descending=true&limit=1')).to.deep.equal(['_local/d'])
    expect(await list('key=%22_local/c%22')).to.deep.equal(['_local/c'])
    for (const query of ['key=%22_local/%22', 'endkey=%22_local/%22', 'descending=true&startkey=%22_local/%22']) {
      expect(await list(query)).to.deep.equal([])
    }
    expect(await list('startkey=%22_local/%22&limit=1')).to.deep.equal(['_local/a'])
    const picked = await node.post('/db/_local_docs', { keys: ['_local/d', '_local/none', 'plain'] })
    expect(picked.json.rows.map((row: any) => row.error ?? row.id)).to.deep.equal(['_local/d', 'not_found'])
    const { results } = (await node.post('/db/_local_docs/queries', { queries: [{ limit: 1 }] })).json
    expect(results[0].rows).to.have.length(1)
  })

  it('are not listed when servers write them for themselves, but can be opened', async () => {
    const hidden = ['purge-', 'purge-a', 'purge-z', 'shard-sync-a-b', 'shard-sync-c']
    const shown = ['a', 'purge', 'purge.', 'q', 'shard-sync', 'shard-sync.', 't']
    for (const name of [...hidden, ...shown]) await node.put(`/db/_local/${name}`, { name })
    const ids = ({ json }: Answer): string[] => json.rows.map(
      (row: any) => row.error ?? row.id.slice('_local/'.length),
    )
    const list = async (query = ''): Promise<string[]> => ids(await node.get(`/db/_local_docs?${query}`))
    expect(await list()).to.deep.equal(shown)
    expect(await list('descending=true')).to.deep.equal(shown.toReversed())
    for (let skip = 0; skip <= shown.length; skip++) {
      for (let limit = 0; limit <= shown.length; limit++) {
        expect(await list(`skip=${skip}&limit=${limit}`)).to.deep.equal(shown.slice(skip, skip + limit))
        const reversed = shown.toReversed().slice(skip, skip + limit)
        expect(await list(`skip=${skip}&limit=${limit}&descending=true`)).to.deep.equal(reversed)
      }
    }
    expect(await list('startkey=%22_local/purge-a%22&endkey=%22_local/shard-sync-b%22&limit=3')).to.deep.equal([
      'purge.', 'q', 'shard-sync',
    ])
    expect(await list('startkey=%22_local/purge-a%22&endkey=%22_local/purge-b%22')).to.deep.equal([])
    expect(await list('key=%22_local/purge-a%22')).to.deep.equal([])
    expect(ids(await node.post('/db/_local_docs', { keys: ['_local/purge-a', '_local/q'] }))).to.deep.equal([
      'not_found', 'q',
    ])
    expect((await node.get('/db/_local/purge-a')).json.name).to.equal('purge-a')
  })
})

describe('partitions', () => {
  it('list their own documents only', async () => {
    const node = new MemoryNode()
    await node.put('/db?q=4&partitioned=true')
    await node.put('/plain')
    await node.post('/db/_bulk_docs', { docs: ['red:1', 'red:2', 'blue:1', 'red:3', 'redder:1'].map(_id => ({ _id })) })
    const list = async (query: string) =>
      (await node.get(`/db/_partition/red/_all_docs?${query}`)).json.rows.map((row: any) => row.id)
    expect(await list('')).to.deep.equal(['red:1', 'red:2', 'red:3'])
    expect(await list('descending=true&limit=1')).to.deep.equal(['red:3'])
    expect(await list('startkey=%22red:2%22')).to.deep.equal(['red:2', 'red:3'])
    expect(await list('startkey=%22a%22&endkey=%22red:1%22')).to.deep.equal(['red:1'])
    expect(await list('key=%22blue:1%22')).to.deep.equal([])
    for (const path of ['_all_docs', 'unknown']) {
      expect((await node.get(`/plain/_partition/red/${path}`)).json.reason).to.equal('database is not partitioned')
    }
    expect((await node.get('/db/_all_docs?partition=blue')).json.rows.map((row: any) =>
      row.id)).to.deep.equal(['blue:1'])
    expect((await node.post('/db/_all_docs', { partition: 'blue' })).json.rows.map((row: any) =>
      row.id)).to.deep.equal(['blue:1'])
    const rowsOf = async (path: string, queries: object[]): Promise<unknown> =>
      (await node.post(path, { queries })).json.results.map(({ rows }: any) => rows.map((row: any) => row.id))
    expect(await rowsOf('/db/_all_docs/queries?partition=red', [{ limit: 1 }, { partition: 'blue' }])).to.deep.equal([
      ['red:1'], ['blue:1'],
    ])
    expect(await rowsOf('/db/_partition/red/_all_docs/queries', [{ limit: 1 }, { skip: 2 }])).to.deep.equal([
      ['red:1'], ['red:3'],
    ])
    expect((await node.get('/db/nowhere/attachment')).json.error).to.equal('illegal_docid')
    expect((await node.get('/db/_partition/_x/_all_docs')).json.error).to.equal('illegal_partition')
    expect((await node.get('/db/_partition')).json.reason).to.equal('invalid_partition_req')
    expect((await node.get('/db/_partition/red/nosuch')).status).to.equal(404)
    expect((await node.get('/db/_partition/red')).json).to.deep.include({ partition: 'red', doc_count: 3 })
    expect((await node.get('/plain/_partition/red')).json.reason).to.equal('database is not partitioned')
    await node.stop()
  })
})
