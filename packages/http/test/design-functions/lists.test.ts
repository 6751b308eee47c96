import assert from 'node:assert/strict'
import { MemoryNode, type Answer } from '../memory-node.ts'
import { MemoryViews } from '../views/memory-views.ts'

let node: MemoryNode
let views: MemoryViews

const design = {
  _id: '_design/d',
  views: { k: { map: 'doc => emit(doc.k, doc.n)' }, r: { map: 'doc => emit(doc.k, doc.n)', reduce: '_sum' } },
  lists: {
    rows: '() => { const all = []; let row; while (row = getRow()) all.push(row); return JSON.stringify(all) }',
    keys: '() => { let row; while (row = getRow()) send(row.key + ";") }',
    first: '() => String(getRow().key)',
    seen: '(head, req) => JSON.stringify([head, req.method, req.query, req.id, req.body])',
    started: `() => {
      getRow(); start({ code: 404, headers: { "Content-Type": "text/plain", "X-A": 1 } }); send("none")
    }`,
    multi: `() => {
      provides('html', () => { let row; send('<ul>'); while (row = getRow()) send('<li>' + row.key); return '</ul>' })
      provides('json', () => '{}')
    }`,
    failing: '() => { send("sent"); getRow(); missing() }',
    thrown: '() => { throw ["error", "not_found", "nobody here"] }',
    broken: 'function (head {',
  },
}

async function write(...docs: readonly object[]): Promise<void> {
  const answer = await node.post('/db/_bulk_docs', { docs })
  assert.deepEqual(answer.json.filter((each: { readonly ok?: boolean }) => each.ok !== true), [])
}

const list = (path: string, headers: Record<string, string> = {}): Promise<Answer> =>
  node.get(`/db/_design/d/_list/${path}`, headers)

describe('a list function', () => {
  beforeEach(async () => {
    node = new MemoryNode({
      wrap: coordinator => {
        views = new MemoryViews(coordinator)
        return Object.assign(coordinator, views)
      },
    })
    await node.put('/db?q=2')
    await write(design, { _id: '_design/other', views: { n: { map: 'doc => emit(-doc.n)' } } },
      { _id: 'd0', k: 'b', n: 0 }, { _id: 'd1', k: 'a', n: 1, to: [2] }, { _id: 'd2', k: 'c', n: 2 })
  })
  afterEach(async () => {
    assert.equal(views.open, 0, 'every answer is closed')
    await node.stop()
  })

  it('makes the response from the rows of a view', async () => {
    const { status, headers, text } = await list('rows/k?limit=2')
    assert.equal(status, 200)
    assert.equal(text, '[{"id":"d1","key":"a","value":1},{"id":"d0","key":"b","value":0}]')
    assert.equal(headers['content-type'], 'application/json')
    assert.equal(headers['content-security-policy'], 'sandbox')
    assert.equal(headers['vary'], 'Accept')
  })

  it('takes the parameters of a view from the query and the body', async () => {
    assert.equal((await list('keys/k?descending=true&skip=1&mine=1')).text, 'b;a;')
    assert.equal((await list('keys/k?keys=["c","a"]')).text, 'c;a;')
    assert.equal((await node.post('/db/_design/d/_list/keys/k?limit=1', { keys: ['c', 'a'] })).text, 'c;')
    assert.equal((await node.post('/db/_design/d/_list/keys/k', {})).text, 'a;b;c;')
  })

  it('reads views of other design documents, and reduced rows', async () => {
    assert.equal((await list('keys/other/n')).text, '-2;-1;0;')
    assert.equal((await list('rows/r')).text, '[{"key":null,"value":3}]')
    assert.equal((await list('rows/r?group=true&limit=1')).text, '[{"key":"a","value":1}]')
    assert.equal((await list('keys/r?reduce=false')).text, 'a;b;c;')
  })

  it('reads all documents in place of a view', async () => {
    assert.equal((await list('keys/_all_docs')).text, '_design/d;_design/other;d0;d1;d2;')
    assert.equal((await list('keys/other/_all_docs?startkey="d1"&descending=true&limit=2')).text,
      'd1;d0;')
    const { json: [row] } = await list('rows/_all_docs?key="d1"&include_docs=true')
    assert.deepEqual([row.id, row.key, row.value, row.doc.k], ['d1', 'd1', { rev: row.doc._rev }, 'a'])
    assert.deepEqual((await list('rows/_all_docs?keys=["none"]')).json, [{ key: 'none', error: 'not_found' }])
    assert.equal((await node.post('/db/_design/d/_list/keys/_all_docs', { keys: ['d2', 'd0'] })).text, 'd2;d0;')
    assert.deepEqual((await list('seen/_all_docs?startkey="d1"')).json[0], { total_rows: 5, offset: 3 })
    assert.match((await list('seen/_all_docs?update_seq=true')).json[0].update_seq, /^5-/)
    assert.deepEqual((await list('rows/lost/_all_docs')).json, { error: 'not_found', reason: 'missing' })
    assert.equal((await list('rows/_all_docs?reduce=true')).json.reason, 'Reduce is invalid for map-only views.')
    const { headers: { etag } } = await list('keys/_all_docs')
    assert.equal((await list('keys/_all_docs', { 'if-none-match': etag! })).status, 304)
    await write({ _id: 'd3' })
    assert.equal((await list('keys/_all_docs', { 'if-none-match': etag! })).status, 200)
  })

  it('reads all documents of a system database for server administrators only', async () => {
    await node.put('/_global_changes')
    await node.put('/_global_changes/_security', { members: { roles: [] }, admins: { roles: ['_admin'] } })
    await node.put('/_global_changes/_design/d', { lists: { ids: '() => { while (getRow()); return "read" }' } })
    const path = '/_global_changes/_design/d/_list/ids/_all_docs'
    assert.equal((await node.get(path)).text, 'read')
    assert.equal((await node.get(path, { authorization: '' })).status, 401)
  })

  it('gets the documents of the rows, without line breaks that they were stored with', async () => {
    await node.post('/db', '{"_id":"d4",\n"k":\n"d"}', { 'content-type': 'application/json' })
    const { json: [row] } = await list('rows/k?key="d"&include_docs=true&attachments=true')
    assert.deepEqual([row.doc._id, row.doc.k], ['d4', 'd'])
  })

  it('sees head and request', async () => {
    assert.deepEqual((await list('seen/k?startkey="b"&a=1')).json,
      [{ total_rows: 3, offset: 1 }, 'GET', { startkey: 'b', a: '1' }, null, 'undefined'])
    assert.deepEqual((await list('seen/r')).json[0], {})
  })

  it('sees the object that was posted', async () => {
    const body = { keys: ['c', { a: null }], mine: 'é' }
    const { json } = await node.post('/db/_design/d/_list/seen/k', body)
    assert.deepEqual(json.slice(1), ['POST', {}, null, body])
  })

  it('chooses status, headers and format', async () => {
    const { status, headers, text } = await list('started/k')
    assert.deepEqual([status, headers['content-type'], headers['x-a'], text], [404, 'text/plain', '1', 'none'])
    const html = await list('multi/k', { accept: 'text/html' })
    assert.deepEqual([html.headers['content-type'], html.text],
      ['text/html; charset=utf-8', '<ul><li>a<li>b<li>c</ul>'])
    assert.equal((await list('multi/k', { accept: 'image/png' })).status, 406)
    const head = await node.request('HEAD', '/db/_design/d/_list/started/k')
    assert.deepEqual([head.status, head.text], [404, ''])
  })

  it('gets an error when it reads more rows than it may, and only then', async () => {
    node.configuration.put('query_server_config', 'list_rows_bytes', '70')
    const { status, json } = await list('keys/k')
    assert.deepEqual([status, json.error], [500, 'too_many_rows'])
    assert.match(json.reason, /70 bytes of rows \(query_server_config\/list_rows_bytes\)/)
    assert.equal((await list('first/k')).text, 'a')
    assert.equal((await list('keys/k?limit=2')).text, 'a;b;')
  })

  it('refuses keys as CouchDB does, also a single one', async () => {
    const refusal = ({ status, json }: Answer): unknown => [status, json.error, json.reason]
    const grouping = 'Multi-key fetches for reduce views must use `group=true`'
    const range = '`keys` is incompatible with `key`, `start_key` and `end_key`'
    const post = (path: string, keys: unknown): Promise<Answer> =>
      node.post(`/db/_design/d/_list/rows/${path}`, { keys })
    for (const path of ['r', 'r?group_level=1']) {
      assert.deepEqual(refusal(await post(path, ['a'])), [400, 'query_parse_error', grouping])
    }
    assert.deepEqual(refusal(await list('rows/r?keys=["a"]')), [400, 'query_parse_error', grouping])
    assert.deepEqual(refusal(await list('rows/k?keys=["a"]&startkey="b"')), [400, 'query_parse_error', range])
    for (const path of ['r', 'k']) {
      assert.deepEqual(refusal(await post(path, 5)), [400, 'query_parse_error', '`keys` must be an array of strings.'])
    }
    assert.equal((await post('r?group=true', ['a'])).text, '[{"key":"a","value":1}]')
    assert.equal((await list('keys/k?keys=["a"]')).text, 'a;')
  })

  it('answers with an error when it fails, whatever it sent before', async () => {
    const error = async (path: string) => {
      const { status, json } = await list(path)
      return [status, json.error]
    }
    assert.deepEqual(await error('failing/k'), [500, 'render_error'])
    assert.deepEqual(await error('thrown/k'), [404, 'not_found'])
    assert.deepEqual(await error('broken/k'), [500, 'compilation_error'])
    assert.deepEqual(await error('none/k'), [404, 'not_found'])
    assert.deepEqual(await error('rows/none'), [404, 'not_found'])
    assert.deepEqual(await error('rows/k?limit=-1'), [400, 'query_parse_error'])
    for (const path of ['', '/rows', '/rows/a/b/c']) {
      const { status, json } = await node.get(`/db/_design/d/_list${path}`)
      assert.deepEqual([status, json], [404, { error: 'list_error', reason: 'Invalid path.' }])
    }
    for (const path of ['/rows/k', '/rows', '/rows/a/b/c']) {
      const { status, json } = await node.put(`/db/_design/d/_list${path}`, {})
      assert.deepEqual([status, json.reason], [405, 'Only GET,POST,HEAD allowed'])
    }
    const text = await node.post('/db/_design/d/_list/rows/k', 'x', { 'content-type': 'text/plain' })
    assert.equal(text.status, 415)
  })

  it('answers 304 until rows, documents, itself or what the client accepts changes', async () => {
    const path = 'rows/k?include_docs=true'
    const { headers: { etag } } = await list(path)
    const statusOf = async (headers: Record<string, string> = {}, at = path): Promise<number> =>
      (await list(at, { 'if-none-match': etag!, ...headers })).status
    assert.equal(await statusOf(), 304)
    assert.equal(await statusOf({ accept: 'text/html' }), 200)
    assert.equal(await statusOf({}, 'rows/k'), 200)
    await node.put('/db/_design/d', { ...design, _rev: (await node.get('/db/_design/d')).json._rev, changed: 1 })
    assert.equal(await statusOf(), 200)
    const changed = (await list(path)).headers['etag']!
    await write({ _id: 'd9', k: 'z', n: 9 })
    assert.equal(await statusOf({ 'if-none-match': changed }), 200)
    assert.equal((await node.post('/db/_design/d/_list/rows/k', {})).headers['etag'], undefined)
  })

  it('has no ETag when it got a row that tells of a failed reduction', async () => {
    await write({ _id: '_design/custom', views: {
      length: { map: design.views.k.map, reduce: '(keys, values) => values.length' },
      failing: { map: design.views.k.map, reduce: '() => { throw 1 }' },
    } })
    assert.notEqual((await list('rows/custom/length')).headers['etag'], undefined)
    const { text, headers } = await list('rows/custom/failing')
    assert.deepEqual([text, headers['etag'], headers['vary']], ['[{"key":null,"value":null}]', undefined, 'Accept'])
  })
})
