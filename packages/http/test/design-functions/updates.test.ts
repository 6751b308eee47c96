import assert from 'node:assert/strict'
import { MemoryNode, type Answer } from '../memory-node.ts'

let node: MemoryNode

/** Calls an update function whose source is given. */
async function update(
  source: string, path = '', body: unknown = '', headers: Record<string, string> = {},
): Promise<Answer> {
  const { json } = await node.get('/db/_design/d')
  const saved = await node.put('/db/_design/d', { _rev: json._rev, updates: { f: source } })
  assert.equal(saved.status, 201, saved.text)
  return node.post(`/db/_design/d/_update/f${path}`, body, headers)
}

function errorOf({ status, json: { error, reason } }: Answer): readonly unknown[] {
  return [status, error, reason]
}

describe('an update function', () => {
  beforeEach(async () => {
    node = new MemoryNode({ http: { jsonValuesMax: 10_000 } })
    await node.put('/db')
    await node.put('/db/x', { n: 1 })
  })
  afterEach(() => node.stop())

  it('creates a document', async () => {
    const source = '(doc, req) => [{ _id: req.id, from: req.body }, "made"]'
    const { status, text, headers } = await update(source, '/a%2Fb', 'q')
    assert.deepEqual([status, text, headers['content-type']], [201, 'made', 'text/html; charset=utf-8'])
    assert.deepEqual([headers['x-couch-id'], headers['content-security-policy']], ['a%2Fb', 'sandbox'])
    const { json } = await node.get('/db/a%2Fb')
    assert.deepEqual(json, { _id: 'a/b', _rev: headers['x-couch-update-newrev'], from: 'q' })
  })

  it('creates a document with the generated id', async () => {
    const { headers } = await update('(doc, req) => [{ _id: req.uuid }, ""]')
    assert.match(headers['x-couch-id']!, /^[0-9a-f]{32}$/)
    assert.equal((await node.get(`/db/${headers['x-couch-id']}`)).status, 200)
  })

  it('changes and deletes the document of the path', async () => {
    const changed = await update('doc => { doc.n++; return [doc, { json: doc.n }] }', '/x')
    assert.deepEqual([changed.status, changed.json], [201, 2])
    assert.match(changed.headers['x-couch-update-newrev']!, /^2-/)
    const deleted = await update('doc => [{ _id: doc._id, _rev: doc._rev, _deleted: true }, "gone"]', '/x')
    assert.equal(deleted.status, 201)
    assert.deepEqual(errorOf(await node.get('/db/x')), [404, 'not_found', 'deleted'])
  })

  it('changes a local document', async () => {
    const source = `(doc, req) => { doc = doc || { _id: req.id, n: 0 }; doc.n++; return [doc, doc.n + ""] }`
    for (const n of ['1', '2', '3']) assert.equal((await update(source, '/_local/l')).text, n)
    assert.deepEqual((await node.get('/db/_local/l')).json, { _id: '_local/l', _rev: '0-3', n: 3 })
    await node.put('/db/_design/s', { shows: { f: 'doc => JSON.stringify(doc)' } })
    const shown = await node.get('/db/_design/s/_show/f/_local/l')
    assert.deepEqual(JSON.parse(shown.text), { _id: '_local/l', _rev: '0-3', n: 3 })
  })

  it('writes a large document, and makes a large response', async () => {
    const { status, text } = await update('() => [{ _id: "l", a: new Array(5e4).fill(1) }, "x".repeat(1e5)]')
    assert.deepEqual([status, text.length], [201, 1e5])
    assert.equal((await node.get('/db/l')).json.a.length, 5e4)
  })

  it('keeps the attachments of the document, and adds others', async () => {
    await node.put('/db/z', { _attachments: { a: { data: 'YQ==' } } })
    await update('doc => { doc._attachments.b = { data: "Yg==" }; return [doc, ""] }', '/z')
    assert.equal((await node.get('/db/z/a')).text, 'a')
    assert.equal((await node.get('/db/z/b')).text, 'b')
  })

  it('writes nothing when it returns no document', async () => {
    const { status, text, headers } = await update('() => [null, "nothing"]', '/x')
    assert.deepEqual([status, text, headers['x-couch-update-newrev']], [200, 'nothing', undefined])
    assert.equal((await node.get('/db')).json.update_seq.split('-')[0], '2')
  })

  it('chooses the status, also of a document that was saved', async () => {
    assert.equal((await update('() => [null, { code: 418 }]')).status, 418)
    const saved = await update('() => [{ _id: "s" }, { code: 299, headers: { "X-Couch-Update-Newrev": "1-x" } }]')
    assert.equal(saved.status, 299)
    assert.equal((await node.get('/db/s')).json._rev, saved.headers['x-couch-update-newrev'])
  })

  it('is answered 202 when fewer than w replicas have the document', async () => {
    assert.equal((await update('() => [{ _id: "s" }, ""]', '?w=2')).status, 202)
    assert.equal((await update('() => [{ _id: "t" }, ""]', '?w=1')).status, 201)
  })

  it('gets 409 when its document was changed meanwhile', async () => {
    assert.deepEqual(errorOf(await update('() => [{ _id: "x" }, ""]')), [409, 'conflict', 'Document update conflict.'])
    const stale = await update('doc => { doc._rev = "1-a"; delete doc._revisions; return [doc, ""] }', '/x')
    assert.equal(stale.status, 409)
  })

  it('has the rules of all writes', async () => {
    assert.equal((await update('() => [{ a: 1 }, ""]')).json.error, 'illegal_docid')
    assert.equal((await update('() => [{ _id: "_x" }, ""]')).json.error, 'illegal_docid')
    assert.equal((await update('() => [{ _id: "x", _y: 1 }, ""]')).json.error, 'doc_validation')
    node.configuration.put('couchdb', 'max_document_size', '1000')
    assert.equal((await update('() => [{ _id: "y", a: "x".repeat(1000) }, ""]')).json.error, 'document_too_large')
    assert.equal((await node.get('/db/y')).status, 404)
  })

  it('is subject to the validation functions of the database', async () => {
    await node.put('/db/_design/v', {
      validate_doc_update: '(doc, old, user) => { if (doc.n > 1) throw { forbidden: user.name + old.n } }',
    })
    const refused = await update('doc => { doc.n++; return [doc, "written"] }', '/x')
    assert.deepEqual(errorOf(refused), [403, 'forbidden', 'admin1'])
    assert.equal((await node.get('/db/x')).json.n, 1)
    assert.equal((await update('doc => { doc.m = 1; return [doc, "written"] }', '/x')).status, 201)
  })

  it('needs an administrator to write a design document', async () => {
    await node.put('/db/_security', {})
    const source = '() => [{ _id: "_design/e", views: {} }, ""]'
    assert.equal((await update(source, '', '', { authorization: '' })).status, 401)
    assert.equal((await node.get('/db/_design/e')).status, 404)
    assert.equal((await update(source)).status, 201)
    assert.deepEqual((await update('() => [{ _id: "_design/e", views: 1 }, ""]')).json.error, 'invalid_design_doc')
  })

  it('writes local documents', async () => {
    const { status, headers } = await update('() => [{ _id: "_local/l", a: 1 }, ""]')
    assert.deepEqual([status, headers['x-couch-update-newrev']], [201, '0-1'])
    assert.equal((await node.get('/db/_local/l')).json.a, 1)
  })

  it('writes nothing when its response is wrong', async () => {
    const wrong = [
      '{ code: 99999 }', '{ headers: { "X-A": "b\\r\\nX-B: c" } }', 'undefined', '7', '{ json: 1, stop: 2 }',
    ]
    for (const response of wrong) {
      assert.deepEqual(errorOf(await update(`() => [{ _id: "w" }, ${response}]`)).slice(0, 2), [500, 'render_error'])
    }
    for (const returned of ['[{ _id: "w" }]', '{ _id: "w" }', 'null', '"text"']) {
      const [status, error, reason] = errorOf(await update(`() => (${returned})`))
      assert.deepEqual([status, error], [500, 'render_error'])
      assert.match(String(reason), /must return \[document, response\]/)
    }
    assert.equal((await node.get('/db/w')).status, 404)
  })

  it('reports its errors', async () => {
    assert.deepEqual(errorOf(await node.post('/db/_design/none/_update/f', '')), [404, 'not_found', 'missing'])
    assert.equal((await update('doc => [doc.a.b, ""]')).json.error, 'render_error')
    assert.deepEqual(errorOf(await node.post('/db/_design/d/_update/g', '')), [404, 'not_found', 'missing json key: g'])
    assert.deepEqual(errorOf(await node.post('/db/_design/d/_update', '')), [404, 'update_error', 'Invalid path.'])
    const read = await node.get('/db/_design/d/_update/f/x')
    assert.deepEqual(errorOf(read), [405, 'method_not_allowed', 'Update functions do not allow GET'])
    assert.equal(read.headers['allow'], 'POST,PUT,DELETE')
    for (const path of ['none/_update/f', 'd/_update/g']) {
      assert.equal((await node.get(`/db/_design/${path}`)).status, 404)
    }
  })

  it('is not called for a body that is too large', async () => {
    node.configuration.put('couchdb', 'max_document_size', '1000')
    const { status, json } = await update('() => [{ _id: "y" }, ""]', '', 'x'.repeat(1001))
    assert.deepEqual([status, json.error], [413, 'too_large'])
    assert.equal((await node.get('/db/y')).status, 404)
  })

  it('is a write, which a node refuses that must not write', async () => {
    await update('() => [null, ""]')
    node.control.writesRefused = 'no majority'
    assert.equal((await node.post('/db/_design/d/_update/f', '')).status, 503)
  })
})
