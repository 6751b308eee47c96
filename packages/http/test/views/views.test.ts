import assert from 'node:assert/strict'
import { ApiError, rootCollationVersion } from '@sectional/core'
import { MemoryNode, type Answer } from '../memory-node.ts'
import { MemoryViews } from './memory-views.ts'

let node: MemoryNode
let views: MemoryViews

function start(): void {
  node = new MemoryNode({
    wrap: coordinator => {
      views = new MemoryViews(coordinator)
      return Object.assign(coordinator, views)
    },
  })
}

async function stop(): Promise<void> {
  assert.equal(views.open, 0, 'every answer is closed')
  await node.stop()
}

async function write(db: string, ...docs: readonly object[]): Promise<void> {
  const answer = await node.post(`/${db}/_bulk_docs`, { docs })
  assert.deepEqual(answer.json.filter((each: { readonly ok?: boolean }) => each.ok !== true), [])
}

function ids(answer: Answer): readonly string[] {
  return (answer.json.rows as { readonly id: string }[]).map(({ id }) => id)
}

const byName = 'doc => { if (doc.name) emit(doc.name, doc.size) }'
const bySize = 'doc => { if (doc.size !== undefined) emit([doc.kind, doc.size], doc.size) }'
const design = {
  _id: '_design/d',
  views: {
    name: { map: byName }, size: { map: bySize, reduce: '_sum' }, none: { map: 'doc => {}', reduce: '_count' },
    large: { map: byName, reduce: '(keys, values) => values' }, throwing: { map: byName, reduce: '() => { throw 1 }' },
    length: { map: byName, reduce: '(keys, values) => values.length' },
    link: { map: 'doc => { if (doc.to !== undefined) emit(doc._id, doc.to) }' },
  },
}

describe('a view', () => {
  beforeEach(async () => {
    start()
    await node.put('/db?q=2')
    await write('db', design,
      { _id: 'a', name: 'x', size: 1, kind: 'p' }, { _id: 'b', name: 'x"y', size: 2, kind: 'p' },
      { _id: 'c', name: 'é', size: 12345678901234567000, kind: 'q' }, { _id: 'other' })
  })
  afterEach(stop)

  it('has a line for each row, framed as in CouchDB', async () => {
    const { status, headers, text } = await node.get('/db/_design/d/_view/name?limit=2')
    assert.deepEqual([status, headers['content-type']], [200, 'application/json'])
    assert.equal(text, '{"total_rows":3,"offset":0,"rows":[\r\n'
      + '{"id":"c","key":"é","value":12345678901234567000},\r\n{"id":"a","key":"x","value":1}\r\n]}\n')
    assert.equal((await node.get('/db/_design/d/_view/name?key=7')).text,
      '{"total_rows":3,"offset":0,"rows":[\r\n\r\n]}\n')
  })

  it('has an offset, unless its rows need not be sorted', async () => {
    assert.equal((await node.get('/db/_design/d/_view/name?startkey="x"&skip=1&limit=0')).text,
      '{"total_rows":3,"offset":2,"rows":[\r\n\r\n]}\n')
    assert.equal((await node.get('/db/_design/d/_view/name?sorted=false&key="x"')).text,
      '{"rows":[\r\n{"id":"a","key":"x","value":1}\r\n]}\n')
  })

  it('has no name, or further names behind its own, only in paths that no method fits', async () => {
    for (const path of ['_view', '_view/name/x', '_view/name/queries/x']) {
      const { status, json } = await node.get(`/db/_design/d/${path}`)
      assert.deepEqual([status, json.reason], [405, 'Only GET,POST,HEAD allowed'])
      assert.equal((await node.post(`/db/_design/d/${path}`, {})).status, 405)
    }
  })

  it('is not there when it fails because it was deleted meanwhile, and fails otherwise', async () => {
    const refuse = async (): Promise<never> => { throw new ApiError('service_unavailable', 'no index') }
    const { _rev: rev } = (await node.get('/db/_design/d')).json
    const unavailable = { error: 'service unavailable', reason: 'no index' }
    node.coordinator.scanView = refuse
    assert.deepEqual((await node.get('/db/_design/d/_view/name')).json, unavailable)
    node.coordinator.scanView = async () => {
      await node.delete(`/db/_design/d?rev=${rev}`)
      return refuse()
    }
    const { status, json } = await node.get('/db/_design/d/_view/name')
    assert.deepEqual([status, json], [404, { error: 'not_found', reason: 'deleted' }])
  })

  it('begins again when it fails because its definition was changed meanwhile', async () => {
    const { scanView } = node.coordinator
    const definitions: string[] = []
    const change = async (map: string): Promise<void> => {
      const { _rev: rev } = (await node.get('/db/_design/d')).json
      const views = { ...design.views, name: { map } }
      assert.equal((await node.put('/db/_design/d', { ...design, views, _rev: rev })).status, 201)
    }
    const changing = (map: string): void => {
      node.coordinator.scanView = async (database, query, context) => {
        definitions.push(query.definition.map)
        if (definitions.length > 1) return scanView(database, query, context)
        await change(map)
        throw new ApiError('service_unavailable', 'no index')
      }
    }
    const changed = 'doc => { if (doc.kind) emit(doc.kind) }'
    changing(changed)
    assert.deepEqual(ids(await node.get('/db/_design/d/_view/name')), ['a', 'b', 'c'])
    assert.deepEqual(definitions, [byName, changed])

    definitions.length = 0
    const last = 'doc => emit(doc._id)'
    changing(last)
    const { json } = await node.post('/db/_design/d/_view/name/queries', { queries: [{ key: 'other' }, { key: 'b' }] })
    const found = json.results.map(({ rows }: { readonly rows: readonly { readonly id: string }[] }) => rows[0]!.id)
    assert.deepEqual(found, ['other', 'b'])
    assert.deepEqual(definitions, [changed, last, last])

    definitions.length = 0
    changing(last)
    assert.equal((await node.get('/db/_design/d/_view/name')).status, 503)
    assert.deepEqual(definitions, [last])
  })

  it('has the sequence of its indexes when the client asks for it', async () => {
    const { json } = await node.get('/db/_design/d/_view/name?update_seq=true&limit=0')
    assert.deepEqual(Object.keys(json), ['total_rows', 'offset', 'update_seq', 'rows'])
    const reduced = await node.get('/db/_design/d/_view/size?update_seq=true')
    assert.deepEqual(Object.keys(reduced.json), ['update_seq', 'rows'])
    assert.equal(reduced.json.update_seq, json.update_seq)
  })

  it('is read by ranges and keys of the query string and of a body', async () => {
    const read = async (query: string): Promise<readonly string[]> =>
      ids(await node.get(`/db/_design/d/_view/name?${query}`))
    const post = async (body: object, query = ''): Promise<readonly string[]> =>
      ids(await node.post(`/db/_design/d/_view/name${query}`, body))
    assert.deepEqual(await read('startkey="x"&descending=true'), ['a', 'c'])
    assert.deepEqual(await read('keys=["x","none","é","x"]'), ['a', 'c', 'a'])
    assert.deepEqual(await read('keys=["x","é"]&descending=true'), ['c', 'a'])
    assert.deepEqual(await read('keys=[]'), [])
    assert.deepEqual(await post({ startkey: 'x', skip: 1 }), ['b'])
    assert.deepEqual(await post({ keys: ['x', 'é'] }, '?limit=1'), ['a'])
    assert.deepEqual(await post({ start_key: 'x', startkey_docid: 'b' }), ['b'])
  })

  it('has no more rows than the options allow', async () => {
    node.configuration.put('query_server_config', 'query_limit', '2')
    const refusal = { error: 'query_parse_error', reason: 'Limit is too large, must not exceed 2' }
    assert.deepEqual(ids(await node.get('/db/_design/d/_view/name')), ['c', 'a'])
    assert.deepEqual((await node.get('/db/_design/d/_view/name?limit=3')).json, refusal)
    assert.deepEqual((await node.post('/db/_design/d/_view/name/queries', { queries: [{ limit: 3 }] })).json, refusal)
    await node.put('/parts?partitioned=true')
    await write('parts', design, ...['p:1', 'p:2', 'p:3'].map(_id => ({ _id, name: 'n' })))
    const part = '/parts/_partition/p/_design/d/_view/name'
    assert.deepEqual(ids(await node.get(part)), ['p:1', 'p:2', 'p:3'])
    node.configuration.put('query_server_config', 'partition_query_limit', '1')
    assert.deepEqual(ids(await node.get(part)), ['p:1'])
    assert.equal((await node.get(`${part}?limit=2`)).json.reason, 'Limit is too large, must not exceed 1')
  })

  it('waits for its indexes as long as an option says', async () => {
    await node.get('/db/_design/d/_view/name')
    node.configuration.put('fabric', 'view_timeout', '2000')
    await node.get('/db/_design/d/_view/name')
    assert.deepEqual(views.queries.map(({ timeoutMs }) => timeoutMs), [300_000, 2_000])
  })

  it('tells the coordinator how fresh its indexes must be', async () => {
    for (const query of ['', '?update=false', '?update=lazy', '?stale=ok', '?stale=update_after']) {
      await node.get(`/db/_design/d/_view/name${query}`)
    }
    assert.deepEqual(views.queries.map(({ update }) => update), [true, false, 'lazy', false, 'lazy'])
  })

  it('is reduced to groups', async () => {
    const rows = async (query: string): Promise<string> => (await node.get(`/db/_design/d/_view/size${query}`)).text
    assert.equal(await rows('?endkey=["p",{}]'), '{"rows":[\r\n{"key":null,"value":3}\r\n]}\n')
    assert.equal(await rows('?group=true&limit=1'), '{"rows":[\r\n{"key":["p",1],"value":1}\r\n]}\n')
    assert.equal(await rows('?group_level=1&limit=1'), '{"rows":[\r\n{"key":["p"],"value":3}\r\n]}\n')
    assert.equal(await rows('?key="none"'), '{"rows":[\r\n\r\n]}\n')
    assert.equal(await rows('?group=true&keys=[["p",2],["p",1]]&descending=true'),
      '{"rows":[\r\n{"key":["p",2],"value":2},\r\n{"key":["p",1],"value":1}\r\n]}\n')
    assert.deepEqual(ids(await node.get('/db/_design/d/_view/size?reduce=false')), ['a', 'b', 'c'])
    assert.equal((await node.get('/db/_design/d/_view/none')).text, '{"rows":[\r\n\r\n]}\n')
    await write('db', { _id: 'd', size: 2, kind: 'p' })
    assert.equal(await rows('?group=true&keys=[["p",2],["p",1]]&descending=true&startkey_docid=b'),
      '{"rows":[\r\n{"key":["p",2],"value":2},\r\n{"key":["p",1],"value":1}\r\n]}\n', 'from b to the first document')
  })

  it('has null or an error in place of a group that could not be reduced', async () => {
    const read = async (view: string): Promise<unknown> =>
      (await node.get(`/db/_design/d/_view/${view}?group=true&limit=1`)).json.rows
    const reason = 'too "large"'
    assert.deepEqual(await read('large'), [{ key: null, error: 'reduce_overflow_error', reason }])
    assert.deepEqual(await read('throwing'), [{ key: 'é', value: null }])
    const slow = { map: byName, reduce: '() => { for (;;); }' }
    await node.put('/db/_design/slow', { views: { slow } })
    const { rows } = (await node.get('/db/_design/slow/_view/slow?group=true&limit=1')).json
    assert.deepEqual(rows, [{ key: 'é', value: null, error: 'timeout', reason }])
  })

  it('answers several queries', async () => {
    const { status, text } = await node.post('/db/_design/d/_view/size/queries?reduce=false', {
      queries: [{ limit: 1 }, { reduce: true, group_level: 1, endkey: ['p', {}] }, { keys: [['p', 2]] }],
    })
    assert.equal(status, 200)
    assert.equal(text, '{"results":[\r\n'
      + '{"total_rows":3,"offset":0,"rows":[\r\n{"id":"a","key":["p",1],"value":1}\r\n]},\r\n'
      + '{"rows":[\r\n{"key":["p"],"value":3}\r\n]},\r\n'
      + '{"total_rows":3,"offset":1,"rows":[\r\n{"id":"b","key":["p",2],"value":2}\r\n]}\r\n]}\n')
    assert.equal((await node.post('/db/_design/d/_view/name/queries', { queries: [] })).text,
      '{"results":[\r\n\r\n]}\n')
  })

  it('refuses a request as a whole when one of its queries is wrong', async () => {
    const { status, json } = await node.post('/db/_design/d/_view/name/queries', {
      queries: [{}, { startkey: 2, endkey: 1 }],
    })
    assert.deepEqual([status, json.error, views.queries.length], [400, 'query_parse_error', 0])
  })

  it('is refused when it does not exist', async () => {
    const refusal = async (path: string): Promise<string> => {
      const { status, json } = await node.get(`/db/_design/${path}`)
      return `${status} ${json.error}: ${json.reason}`
    }
    assert.equal(await refusal('none/_view/name'), '404 not_found: missing')
    assert.equal(await refusal('d/_view/lost'), '404 not_found: missing_named_view')
    const { headers } = await node.get('/db/_design/d')
    await node.delete(`/db/_design/d?rev=${headers['etag']!.replaceAll('"', '')}`)
    assert.equal(await refusal('d/_view/name'), '404 not_found: deleted')
    await write('db', { _id: '_design/cobol', language: 'cobol', views: { v: { map: 'ADD 1 TO X' } } })
    assert.equal(await refusal('cobol/_view/v'), '500 unknown_query_language: cobol')
  })

  it('reports a missing design document first, then a wrong body or parameter, then a missing view', async () => {
    const reasonOf = async (design: string, view: string, rest: string, body?: string): Promise<string> => {
      const path = `/db/_design/${design}/${view}${rest}`
      const type = { 'content-type': body === '' ? 'text/plain' : 'application/json' }
      return (await (body === undefined ? node.get(path) : node.post(path, body, type))).json.reason
    }
    await write('db', { _id: '_design/lists', lists: { f: '() => ""' } })
    for (const path of ['_view/lost', '_view/lost/queries']) {
      assert.equal(await reasonOf('none', path, '', ''), 'missing')
      assert.equal(await reasonOf('d', path, '', ''), 'Content-Type must be application/json')
      assert.equal(await reasonOf('d', path, '', '{"queries":[]}'), path.endsWith('queries') ? 'missing_named_view'
        : 'The `queries` parameter is no longer supported at this endpoint')
    }
    for (const [design, path] of [['d', '_view/lost'], ['lists', '_list/f/lost']] as const) {
      assert.equal(await reasonOf(design, path, '?limit=x'), 'Invalid value for integer: "x"')
      assert.equal(await reasonOf(design, path, '?group=false&group_level=1'), 'missing_named_view')
    }
  })

  it('refuses what cannot be read, with the texts of CouchDB', async () => {
    const refusal = async (query: string): Promise<string> => {
      const { status, json } = await node.get(`/db/_design/d/_view/${query}`)
      return `${status} ${json.error}: ${json.reason}`
    }
    assert.equal(await refusal('name?startkey=2&endkey=1'),
      '400 query_parse_error: No rows can match your key range, reverse your start_key and end_key or set '
      + 'descending=true')
    assert.equal(await refusal('name?group=true'), '400 query_parse_error: Invalid use of grouping on a map view.')
    assert.equal(await refusal('size?keys=[1,2]'),
      '400 query_parse_error: Multi-key fetches for reduce views must use `group=true`')
    assert.equal(await refusal('name?key={'), '400 bad_request: invalid UTF-8 JSON')
    for (const path of ['name', 'name/queries']) {
      const target = `/db/_design/d/_view/${path}`
      assert.equal((await node.post(target, '{"queries":[]}', { 'content-type': 'text/plain' })).status, 415)
    }
    assert.deepEqual(views.queries, [])
  })

  describe('its tag', () => {
    const path = '/db/_design/d/_view/name'

    async function changed(tag: string, query = ''): Promise<boolean> {
      const { status, text } = await node.get(path + query, { 'if-none-match': tag })
      assert.equal(status === 304, text === '')
      return status !== 304
    }

    async function tagOf(query = ''): Promise<string> {
      return (await node.get(path + query)).headers['etag']!
    }

    it('holds until a row of the view changes', async () => {
      const tag = await tagOf()
      await write('db', { _id: 'unrelated' })
      assert.equal(await changed(tag), false)
      await write('db', { _id: 'more', name: 'n' })
      assert.equal(await changed(tag), true)
    })

    it('belongs to the parameters, and is that of HEAD, too', async () => {
      const tag = await tagOf()
      assert.equal(await changed(tag, '?limit=1'), true)
      assert.equal(await changed(await tagOf('?limit=1'), '?limit=1'), false)
      const { status, headers, text } = await node.request('HEAD', path)
      assert.deepEqual([status, headers['etag'], text], [200, tag, ''])
    })

    it('is missing when a function failed for a group, since it may succeed the next time', async () => {
      const etagOf = async (view: string, query = ''): Promise<string | undefined> =>
        (await node.get(`/db/_design/d/_view/${view}${query}`)).headers['etag']
      assert.equal(await etagOf('large', '?limit=1'), undefined)
      assert.equal(await etagOf('throwing', '?group=true'), undefined)
      assert.notEqual(await etagOf('length'), undefined)
      await write('db', { _id: 'long', name: 'z'.repeat(70_000) })
      assert.notEqual(await etagOf('length'), undefined)
      assert.equal(await etagOf('length', '?group=true'), undefined, 'the answer begins before its last group is known')
    })

    it('changes with any document when documents are included, or the sequence is shown', async () => {
      const tags = { docs: await tagOf('?include_docs=true'), sequence: await tagOf('?update_seq=true') }
      assert.equal(await changed(tags.docs, '?include_docs=true'), false)
      assert.equal(await changed(tags.sequence, '?update_seq=true'), false)
      await write('db', { _id: 'unrelated' })
      assert.equal(await changed(tags.docs, '?include_docs=true'), true)
      assert.equal(await changed(tags.sequence, '?update_seq=true'), true)
    })
  })
})

describe('include_docs of a view', () => {
  beforeEach(async () => {
    start()
    await node.put('/db?q=2')
    await write('db', design, { _id: 'a', name: 'x', size: 1 })
  })
  afterEach(stop)

  async function documents(query: string): Promise<Readonly<Record<string, unknown>>> {
    const { status, json } = await node.get(`/db/_design/d/_view/${query}`)
    assert.equal(status, 200)
    return Object.fromEntries((json.rows as { readonly id: string; readonly doc: unknown }[])
      .map(({ id, doc }) => [id, doc]))
  }

  it('adds the document of each row', async () => {
    const { text } = await node.get('/db/_design/d/_view/name?include_docs=true')
    assert.match(text, /^\{"id":"a","key":"x","value":1,"doc":\{"_id":"a","_rev":"1-\w+","name":"x","size":1\}\}\r$/m)
  })

  it('adds conflicts and the content of attachments', async () => {
    const leaf = (hash: string): object => ({ _id: 'k', _rev: `1-${hash.repeat(32)}`, name: hash })
    await node.post('/db/_bulk_docs', { new_edits: false, docs: [leaf('a'), leaf('b')] })
    await write('db', { _id: 'f', name: 'f', _attachments: { 'n.txt': { content_type: 'text/x', data: 'YWJj' } } })
    const plain = await documents('name?include_docs=true') as any
    assert.deepEqual([plain.k._conflicts, plain.f._attachments['n.txt'].stub], [undefined, true])
    const full = await documents('name?include_docs=true&conflicts=true&attachments=true') as any
    assert.deepEqual(full.k._conflicts, [`1-${'a'.repeat(32)}`])
    assert.equal(full.f._attachments['n.txt'].data, 'YWJj')
  })

  it('adds the document that the value names', async () => {
    const { headers } = await node.get('/db/a')
    const first = headers['etag']!.replaceAll('"', '')
    const attachment = { content_type: 'a/b', data: 'YWJj' }
    await write('db', { _id: 'a', _rev: first, name: 'new', _attachments: { n: attachment } })
    await write('db',
      { _id: 'l1', to: { _id: 'a' } }, { _id: 'l2', to: { _id: 'a', _rev: first } }, { _id: 'l3', to: { _id: 'lost' } },
      { _id: 'l4', to: { _id: null } }, { _id: 'l5', to: { _id: '' } }, { _id: 'l6', to: { _id: 'a', _rev: 'x' } },
      { _id: 'l7', to: { _id: 'a', _rev: '7-abc' } }, { _id: 'l8', to: { id: '"_id"' } }, { _id: 'l9', to: 'a' },
      { _id: 'm1', to: { _rev: 1 } }, { _id: 'm2', to: { _id: ['a'] } })
    const found = await documents('link?include_docs=true&attachments=true') as any
    const { n } = found.l1._attachments
    assert.deepEqual([found.l1.name, n.stub, n.data], ['new', true, undefined])
    assert.deepEqual(found.l2, { _id: 'a', _rev: first, name: 'x', size: 1 })
    for (const id of ['l3', 'l4', 'l5', 'l6', 'l7', 'm2']) assert.equal(found[id], null, id)
    for (const id of ['l8', 'l9', 'm1']) assert.equal(found[id]._id, id)
  })

  it('adds the revision of the own document that the value names', async () => {
    const attachment = { content_type: 'a/b', data: 'YWJj' }
    await write('db', { _id: 'b', n: 1, _attachments: { x: attachment } })
    const first = (await node.get('/db/b')).json._rev
    await write('db', { _id: 'b', _rev: first, n: 2, to: { _rev: first } }, { _id: 'c', to: { _rev: first } })
    const found = await documents('link?include_docs=true&attachments=true') as any
    assert.deepEqual([found.b._rev, found.b.n, found.b._attachments.x.data], [first, 1, 'YWJj'])
    assert.equal(found.c, null)
  })

  it('has null for a named document that was deleted', async () => {
    await write('db', { _id: 'l', to: { _id: 'a' } })
    const { headers } = await node.get('/db/a')
    await node.delete(`/db/a?rev=${headers['etag']!.replaceAll('"', '')}`)
    assert.deepEqual(await documents('link?include_docs=true'), { l: null })
  })

  it('is refused for reduced rows', async () => {
    const { status, json } = await node.get('/db/_design/d/_view/size?include_docs=true')
    assert.deepEqual([status, json.reason], [400, '`include_docs` is invalid for reduce'])
  })
})

describe('a view of a partitioned database', () => {
  const map = 'doc => emit(doc.n, doc.n)'
  beforeEach(async () => {
    start()
    await node.put('/db?q=2&partitioned=true')
    await write('db', { _id: '_design/p', views: { v: { map, reduce: '_sum' } } },
      { _id: '_design/all', views: { v: { map } }, options: { partitioned: false } },
      { _id: 'oslo:1', n: 3 }, { _id: 'oslo:2', n: 1 }, { _id: 'rome:1', n: 2 })
  })
  afterEach(stop)

  it('has the rows of one partition, by path and by parameter', async () => {
    for (const path of ['_partition/oslo/_design/p/_view/v?', '_design/p/_view/v?partition=oslo&']) {
      assert.deepEqual(ids(await node.get(`/db/${path}reduce=false`)), ['oslo:2', 'oslo:1'])
    }
    assert.deepEqual((await node.get('/db/_partition/oslo/_design/p/_view/v')).json.rows, [{ key: null, value: 4 }])
    assert.deepEqual(ids(await node.get('/db/_partition/lost/_design/p/_view/v?reduce=false')), [])
    const { json } = await node.post('/db/_partition/oslo/_design/p/_view/v/queries', { queries: [{ key: 1 }, {}] })
    assert.deepEqual(json.results, [{ rows: [{ key: null, value: 1 }] }, { rows: [{ key: null, value: 4 }] }])
    assert.deepEqual(new Set(views.queries.map(({ partition }) => partition)), new Set(['oslo', 'lost']))
  })

  it('has the rows of all partitions when its design document says so', async () => {
    assert.deepEqual(ids(await node.get('/db/_design/all/_view/v')), ['oslo:2', 'rome:1', 'oslo:1'])
    assert.equal(views.queries[0]!.partition, undefined)
  })

  it('is refused without a partition, or with one that it does not have', async () => {
    const refusal = async (path: string): Promise<string> => {
      const { status, json } = await node.get(`/db/${path}`)
      return `${status} ${json.error}: ${json.reason}`
    }
    assert.equal(await refusal('_design/p/_view/v'),
      '400 query_parse_error: `partition` parameter is mandatory for queries to this view.')
    assert.equal(await refusal('_partition/oslo/_design/all/_view/v'),
      '400 query_parse_error: `partition` parameter is not supported in this design doc')
    assert.equal(await refusal('_partition/_bad/_design/p/_view/v'),
      '400 illegal_partition: Partition must not start with an underscore')
    assert.equal(await refusal('_partition/oslo/_design/lost/_view/v'), '404 not_found: missing')
  })
})

describe('the indexes of views', () => {
  beforeEach(async () => {
    start()
    await node.put('/db?q=2')
    await write('db', design)
  })
  afterEach(stop)

  it('are described together for each design document', async () => {
    const { status, json } = await node.get('/db/_design/d/_info')
    const { signature, collator_versions, ...rest } = json.view_index
    assert.deepEqual([status, json.name], [200, 'd'])
    assert.match(signature, /^[0-9a-f]{32}$/)
    assert.deepEqual(collator_versions, [rootCollationVersion.collator])
    assert.deepEqual(rest, {
      updates_pending: { minimum: 3, preferred: 4, total: 9 }, waiting_commit: false, waiting_clients: 2,
      updater_running: true, update_seq: 7, sizes: { file: 300, active: 200, external: 100 }, purge_seq: 0,
      language: 'javascript', compact_running: false,
      failed_documents: { count: 7, examples: [{ id: 'f', error: 'no name' }] },
    })
    assert.deepEqual(Object.keys(rest.sizes), ['file', 'external', 'active'])
    assert.equal((await node.get('/db/_design/none/_info')).json.reason, 'missing')
  })

  it('have one signature when the views and their names are equal, and others when they are not', async () => {
    const view = { map: byName, reduce: '_count' }
    await write('db',
      { _id: '_design/one', views: { v: view }, filters: { f: 'x' } }, { _id: '_design/two', views: { v: view } },
      { _id: '_design/name', views: { w: view } },
      { _id: '_design/map', views: { v: { ...view, map: bySize } } },
      { _id: '_design/reduce', views: { v: { ...view, reduce: '_sum' } } },
      { _id: '_design/options', views: { v: view }, options: { include_design: true } })
    const signature = async (name: string): Promise<string> =>
      (await node.get(`/db/_design/${name}/_info`)).json.view_index.signature
    const one = await signature('one')
    assert.equal(await signature('two'), one)
    for (const name of ['name', 'map', 'reduce', 'options']) assert.notEqual(await signature(name), one, name)
  })

  it('are kept by a cleanup while a design document needs them', async () => {
    await write('db', { _id: '_design/one', views: { v: { map: byName } } }, { _id: 'a', views: { v: { map: '1' } } })
    const { status, json } = await node.post('/db/_view_cleanup', {})
    assert.deepEqual([status, json], [202, { ok: true }])
    const maps = views.used[0]!.map(({ map }) => map)
    assert.deepEqual(new Set(maps), new Set([...Object.values(design.views).map(({ map }) => map), byName]))
    const { headers } = await node.get('/db/_design/d')
    await node.delete(`/db/_design/d?rev=${headers['etag']!.replaceAll('"', '')}`)
    await node.post('/db/_view_cleanup', {})
    assert.deepEqual(views.used[1]!.map(({ map }) => map), [byName])
  })

  it('are not removed by members of the database', async () => {
    await node.put('/db/_security', { members: { roles: [] }, admins: {} })
    const { status } = await node.post('/db/_view_cleanup', {}, { authorization: '' })
    assert.equal(status, 401)
    assert.deepEqual(views.used, [])
  })
})
