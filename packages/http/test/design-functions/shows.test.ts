import assert from 'node:assert/strict'
import { MemoryNode, type Answer } from '../memory-node.ts'

let node: MemoryNode

async function save(shows: Readonly<Record<string, string>>, others: object = {}): Promise<void> {
  const { json } = await node.get('/db/_design/d')
  const answer = await node.put('/db/_design/d', { _rev: json._rev, shows, ...others })
  assert.equal(answer.status, 201, answer.text)
}

/** Calls a show function whose source is given. */
async function show(source: string, path = '', headers: Record<string, string> = {}): Promise<Answer> {
  await save({ f: source })
  return node.get(`/db/_design/d/_show/f${path}`, headers)
}

function errorOf({ status, json: { error, reason } }: Answer): readonly unknown[] {
  return [status, error, reason]
}

describe('a show function', () => {
  beforeEach(async () => {
    node = new MemoryNode({ http: { jsonValuesMax: 10_000 } })
    await node.put('/db')
    await node.put('/db/x', { n: 1 })
    await node.put('/db/a%2Fb', { n: 2 })
  })
  afterEach(() => node.stop())

  it('makes the response from the document', async () => {
    const { status, headers, text } = await show('doc => "n: " + doc.n', '/x')
    assert.deepEqual([status, text], [200, 'n: 1'])
    assert.equal(headers['content-type'], 'text/html; charset=utf-8')
    assert.equal(headers['content-security-policy'], 'sandbox')
    assert.equal(headers['vary'], 'Accept')
    assert.equal(headers['cache-control'], undefined)
  })

  it('sends JSON, or the bytes of Base64', async () => {
    const json = await show('doc => ({ json: { n: doc.n } })', '/x')
    assert.deepEqual([json.text, json.headers['content-type'], json.headers['cache-control']],
      ['{"n":1}\n', 'application/json', 'must-revalidate'])
    const bytes = await show('() => ({ base64: "YWI=" })')
    assert.deepEqual([bytes.text, bytes.headers['content-type']], ['ab', 'application/binary'])
  })

  it('chooses status and headers, except those of the server', async () => {
    const { status, headers } = await show(`() => ({ code: 203, body: "x", headers: {
      "x-mine": 1, "content-type": "text/plain", etag: '"mine"', vary: "Cookie", server: "mine",
      "content-security-policy": "default-src *" } })`)
    assert.deepEqual([status, headers['x-mine'], headers['content-type']], [203, '1', 'text/plain'])
    assert.notEqual(headers['etag'], '"mine"')
    assert.match(headers['server']!, /^Sectional/)
    assert.deepEqual([headers['vary'], headers['content-security-policy']], ['Accept', 'sandbox'])
    node.configuration.put('csp', 'showlist_enable', 'false')
    const free = await show('() => ({ headers: { "Content-Security-Policy": "default-src *" } })')
    assert.equal(free.headers['content-security-policy'], 'default-src *')
  })

  it('varies with the origin, too, when cross-origin requests are allowed', async () => {
    node.configuration.put('chttpd', 'enable_cors', 'true')
    node.configuration.put('cors', 'origins', '*')
    const { headers } = await show('() => ({ headers: { "access-control-allow-origin": "http://b" } })', '', {
      origin: 'http://a',
    })
    assert.deepEqual([headers['vary'], headers['access-control-allow-origin']], ['Accept, Origin', 'http://a'])
  })

  it('sends no body with a status that has none', async () => {
    for (const code of [204, 205, 304]) {
      const { status, text } = await show(`() => ({ code: ${code}, body: "x" })`)
      assert.deepEqual([status, text], [code, ''])
    }
  })

  it('finds a document whose id contains slashes, written in either way', async () => {
    assert.equal((await show('doc => String(doc.n)', '/a/b')).text, '2')
    assert.equal((await show('doc => String(doc.n)', '/a%2Fb')).text, '2')
  })

  it('gets null for a document that does not exist or is deleted, and without an id', async () => {
    const source = '(doc, req) => JSON.stringify([doc, req.id])'
    assert.equal((await show(source)).text, '[null,null]')
    assert.equal((await show(source, '/none')).text, '[null,"none"]')
    const { json: { _rev } } = await node.get('/db/x')
    await node.delete(`/db/x?rev=${_rev}`)
    assert.equal((await show(source, '/x')).text, '[null,"x"]')
  })

  it('sees revisions, conflicts and attachments of the document', async () => {
    const ids = Array.from({ length: 25 }, (_, n) => `${n}`.padStart(32, '0'))
    const path = (start: number, list: readonly string[]): object => ({ _revisions: { start, ids: list } })
    await node.post('/db/_bulk_docs', { new_edits: false, docs: [
      { _id: 'y', _rev: `25-${ids[0]}`, ...path(25, ids) }, { _id: 'y', _rev: '2-b', ...path(2, ['b', 'a']) },
    ] })
    const { json } = await show('doc => ({ json: doc })', '/y')
    assert.deepEqual(json, {
      _id: 'y', _rev: `25-${ids[0]}`, _revisions: { start: 25, ids: ids.slice(0, 20) }, _conflicts: ['2-b'],
    })
    await node.put('/db/z', { _attachments: { t: { data: 'YQ==' } } })
    assert.equal((await show('doc => ({ json: doc._attachments.t.stub })', '/z')).json, true)
  })

  it('is 404 when it, its design document or its document is missing', async () => {
    assert.deepEqual(errorOf(await node.get('/db/_design/none/_show/f')), [404, 'not_found', 'missing'])
    await save({ f: '() => ""' })
    assert.deepEqual(errorOf(await node.get('/db/_design/d/_show/g')), [404, 'not_found', 'missing json key: g'])
    assert.equal((await node.get('/db/_design/d/_show/toString')).status, 404)
    assert.deepEqual(errorOf(await node.get('/db/_design/d/_show')), [404, 'show_error', 'Invalid path.'])
    await node.put('/db/_design/e', {})
    assert.deepEqual(errorOf(await node.get('/db/_design/e/_show/f')), [404, 'not_found', 'missing json key: shows'])
    const read = 'doc => doc.n'
    assert.deepEqual(errorOf(await show(read, '/none')), [404, 'not_found', 'document not found'])
    assert.deepEqual(errorOf(await show('() => { throw ["error", "a", "b"] }', '/none')),
      [404, 'not_found', 'document not found'])
    assert.equal((await show(read)).status, 500)
  })

  it('is 500 when it fails, and names the place', async () => {
    assert.deepEqual(errorOf(await show('doc => doc.a.b', '/x')), [
      500, 'render_error',
      "function raised error: TypeError: Cannot read properties of undefined (reading 'b') (line 1, column 14)",
    ])
    const [status, error, reason] = errorOf(await show('doc => {\n  return (', '/x'))
    assert.deepEqual([status, error], [500, 'compilation_error'])
    assert.match(String(reason), /^A function of _design\/d does not compile: .*line \d/)
    assert.deepEqual(errorOf(await show('() => [1]')).slice(0, 2), [500, 'render_error'])
    const failures = node.log.lines.filter(({ message }) => message === 'request failed')
    assert.deepEqual(failures, [], 'the errors of a function are not those of the node')
  })

  it('may throw an error that the client gets', async () => {
    const thrown = async (value: string): Promise<readonly unknown[]> => errorOf(await show(`() => { throw ${value} }`))
    assert.deepEqual(await thrown('["error", "my_error", "my reason"]'), [500, 'my_error', 'my reason'])
    assert.deepEqual(await thrown('["fatal", "my_error", { a: 1 }]'), [500, 'my_error', '{"a":1}'])
    assert.deepEqual(await thrown('({ error: "gone_away", reason: "not here" })'), [500, 'gone_away', 'not here'])
    assert.deepEqual(await thrown('["error", "not_found", "no page"]'), [404, 'not_found', 'no page'])
    assert.deepEqual(await thrown('({ forbidden: "no" })'), [403, 'forbidden', 'no'])
    assert.deepEqual(await thrown('({ unauthorized: "who?" })'), [401, 'unauthorized', 'who?'])
    assert.deepEqual(await thrown('"text"'), [500, 'render_error', 'function raised error: "text"'])
    assert.deepEqual(await thrown('["error", "constructor", "x"]'), [500, 'constructor', 'x'])
  })

  it('answers 304 until its document, itself or what the client accepts changes', async () => {
    const source = 'doc => "n=" + doc.n'
    const { headers: { etag } } = await show(source, '/x')
    const again = (headers: Record<string, string> = {}, path = '/x'): Promise<Answer> =>
      node.get(`/db/_design/d/_show/f${path}`, { 'if-none-match': etag!, ...headers })
    const unchanged = await again()
    assert.deepEqual([unchanged.status, unchanged.text, unchanged.headers['etag']], [304, '', etag])
    assert.equal((await again({ accept: 'text/html' })).status, 200)
    assert.equal((await again({}, '/x?a')).status, 200)
    assert.equal((await again({}, '/a/b')).status, 200)
    const { json: { _rev } } = await node.get('/db/x')
    await node.put('/db/x', { _rev, n: 3 })
    const changed = await again()
    assert.deepEqual([changed.status, changed.text], [200, 'n=3'])
    const next = (await again()).headers['etag']!
    await save({ f: 'doc => "N=" + doc.n' })
    assert.equal((await again({ 'if-none-match': next })).text, 'N=3')
  })

  it('has a tag of its own for each path to which one URL is rewritten', async () => {
    await save({ f: 'doc => "f"', g: 'doc => "g"' }, { rewrites: 'req => "/_show/" + req.headers["X-Name"] + "/x"' })
    const get = (name: string, headers: Record<string, string> = {}): Promise<Answer> =>
      node.get('/db/_design/d/_rewrite/any', { 'x-name': name, ...headers })
    const first = await get('f')
    assert.equal(first.text, 'f')
    const other = await get('g', { 'if-none-match': first.headers['etag']! })
    assert.deepEqual([other.status, other.text], [200, 'g'])
    assert.equal((await get('f', { 'if-none-match': first.headers['etag']! })).status, 304)
  })

  it('is not run by POST for an ETag, and gets the body of a POST', async () => {
    await save({ f: '(doc, req) => req.method + req.body' })
    const { text, headers } = await node.post('/db/_design/d/_show/f', 'abc')
    assert.deepEqual([text, headers['etag']], ['POSTabc', undefined])
    const head = await node.request('HEAD', '/db/_design/d/_show/f')
    assert.deepEqual([head.status, head.text, head.headers['content-length']], [200, '', '12'])
  })

  it('is called for PUT and DELETE, too, which write nothing', async () => {
    await save({ f: '(doc, req) => ({ json: [req.method, doc && doc.n, req.body] })' })
    const { json: { update_seq: sequence } } = await node.get('/db')
    assert.deepEqual((await node.put('/db/_design/d/_show/f/x', 1)).json, ['PUT', 1, '1'])
    assert.deepEqual((await node.delete('/db/_design/d/_show/f/x')).json, ['DELETE', 1, 'undefined'])
    assert.equal((await node.get('/db')).json.update_seq, sequence)
    const { status, headers } = await node.request('COPY', '/db/_design/d/_show/f/x')
    assert.deepEqual([status, headers['allow']], [405, 'GET,HEAD,POST,PUT,DELETE'])
  })

  it('reads modules of its design document', async () => {
    await save({ f: '() => require("lib/text").hello' }, { lib: { text: 'exports.hello = "hello"' } })
    assert.equal((await node.get('/db/_design/d/_show/f')).text, 'hello')
    await save({ f: '() => require("lib/none")', g: '() => require("lib/bad")' }, { lib: { bad: 'throw "x"' } })
    assert.deepEqual(errorOf(await node.get('/db/_design/d/_show/f')).slice(0, 2), [500, 'invalid_require_path'])
    assert.deepEqual(errorOf(await node.get('/db/_design/d/_show/g')).slice(0, 2), [500, 'compilation_error'])
  })

  it('offers formats, of which the client chooses', async () => {
    await save({ f: `doc => {
      registerType("foo", "application/foo")
      provides("html", () => "<p>" + doc.n)
      provides("json", () => ({ json: { n: doc.n } }))
      provides("foo", () => ({ body: "foo", headers: { "content-type": "application/foo; mine" } }))
    }` })
    const typed = async (path: string, accept: string): Promise<readonly unknown[]> => {
      const { status, text, headers } = await node.get(`/db/_design/d/_show/f/x${path}`, { accept })
      return [status, text, headers['content-type']]
    }
    assert.deepEqual(await typed('', 'text/*'), [200, '<p>1', 'text/html; charset=utf-8'])
    assert.deepEqual(await typed('', 'application/json'), [200, '{"n":1}\n', 'application/json'])
    assert.deepEqual(await typed('?format=foo', 'text/html'), [200, 'foo', 'application/foo; mine'])
    assert.equal((await typed('', 'image/png'))[0], 406)
    assert.deepEqual(errorOf(await node.get('/db/_design/d/_show/f/x', { accept: 'image/png' })).slice(0, 2),
      [406, 'not_acceptable'])
  })

  it('may send its response in parts', async () => {
    const { status, text, headers } = await show(
      '() => { start({ code: 203, headers: { "X-A": "b" } }); send("1"); send("2"); return "3" }',
    )
    assert.deepEqual([status, text, headers['x-a']], [203, '123', 'b'])
  })

  it('is found although this node does not know its design document yet', async () => {
    const designDocument = async (): Promise<null> => null
    const late = new MemoryNode({ wrap: coordinator => Object.assign(coordinator, { designDocument }) })
    await late.put('/db')
    await late.put('/db/_design/d', { shows: { f: '() => "found"' } })
    assert.equal((await late.get('/db/_design/d/_show/f')).text, 'found')
    await late.stop()
  })

  it('must be written in JavaScript', async () => {
    await save({ f: '() => ""' }, { language: 'erlang' })
    assert.deepEqual(errorOf(await node.get('/db/_design/d/_show/f')), [500, 'unknown_query_language', 'erlang'])
  })

  it('is for members of the database', async () => {
    await save({ f: '() => ""' })
    await node.put('/db/_security', { members: { names: ['bob'] } })
    assert.equal((await node.get('/db/_design/d/_show/f', { authorization: '' })).status, 401)
  })

  it('sends U+FFFD for what UTF-8 cannot encode', async () => {
    const source = '(doc, req) => ({ json: [req.query, "\\ud800", "\\\\\\udc00", "\\\\ud800", "\\ud83d\\ude00"] })'
    assert.deepEqual((await show(source, '/x?a=%ff')).json,
      [{ a: '\ufffd' }, '\ufffd', '\\\ufffd', '\\ud800', '😀'])
    assert.equal((await show('() => "a\\udfff\\ud800b"')).text, 'a\ufffd\ufffdb')
  })

  it('makes a large response', async () => {
    const lengthOf = async (source: string): Promise<readonly unknown[]> => {
      const { status, headers, text } = await show(source)
      return [status, headers['x-a'], text.length]
    }
    assert.deepEqual(await lengthOf('() => "é".repeat(1e5)'), [200, undefined, 1e5])
    assert.deepEqual(await lengthOf('() => ({ base64: "YWJj".repeat(1e5), code: 203 })'), [203, undefined, 3e5])
    assert.deepEqual(await lengthOf('() => ({ json: "x".repeat(1e5), headers: { "X-A": "b" } })'), [200, 'b', 1e5 + 3])
    assert.equal((await show('() => ({ json: new Array(5e4).fill(1) })')).json.length, 5e4)
  })

  it('is refused when its response has many members or values', async () => {
    const many = 'Object.fromEntries(Array.from({ length: 1e4 }, (_, n) => ["x" + n, ""]))'
    assert.deepEqual(errorOf(await show(`() => ${many}`)).slice(0, 2), [500, 'render_error'])
    assert.deepEqual(errorOf(await show(`() => ({ headers: ${many} })`)).slice(0, 2), [500, 'render_error'])
  })
})
