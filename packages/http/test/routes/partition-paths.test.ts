import assert from 'node:assert/strict'
import { MemoryNode } from '../memory-node.ts'
import { MemoryViews } from '../views/memory-views.ts'

let node: MemoryNode

const seen = '(doc, req) => ({ json: [doc && doc._id, req.query, req.path, req.requested_path] })'

describe('a path below a partition', () => {
  beforeEach(async () => {
    node = new MemoryNode({ wrap: coordinator => Object.assign(coordinator, new MemoryViews(coordinator)) })
    await node.put('/p?q=2&partitioned=true')
    await node.put('/plain')
    await node.put('/p/_design/l', {
      views: { m: { map: 'doc => emit(doc.n)' } },
      lists: { l: '() => { let row; while (row = getRow()) send(row.id + " ") }' },
      shows: { s: seen },
      updates: { u: '(doc, req) => [{ _id: "a:3", by: req.query.partition }, "made"]' },
      rewrites: [{ from: 'x', to: '_list/l/m' }, { from: 'docs', to: '../../_all_docs' }],
    })
    await node.post('/p/_bulk_docs', { docs: [{ _id: 'a:1', n: 2 }, { _id: 'a:2', n: 1 }, { _id: 'b:1', n: 0 }] })
  })
  afterEach(() => node.stop())

  it('leads to the functions of design documents, with the parameter partition', async () => {
    assert.equal((await node.get('/p/_partition/a/_design/l/_list/l/m?limit=2')).text, 'a:2 a:1 ')
    assert.equal((await node.post('/p/_partition/b/_design/l/_list/l/l/m', {})).text, 'b:1 ')
    assert.equal((await node.get('/p/_partition/a/_design/l/_list/l/_all_docs')).text, 'a:1 a:2 ')
    assert.deepEqual((await node.get('/p/_partition/a/_design/l/_show/s/a:1?q=1')).json, [
      'a:1', { q: '1', partition: 'a' }, ['p', '_design', 'l', '_show', 's', 'a:1'],
      ['p', '_partition', 'a', '_design', 'l', '_show', 's', 'a:1'],
    ])
    const updated = await node.post('/p/_partition/a/_design/l/_update/u', {})
    assert.deepEqual([updated.status, updated.text], [201, 'made'])
    assert.equal((await node.get('/p/a:3')).json.by, 'a')
  })

  it('leads to rewrites, which keep the partition', async () => {
    assert.equal((await node.get('/p/_partition/a/_design/l/_rewrite/x')).text, 'a:2 a:1 ')
    const { json: { rows } } = await node.get('/p/_partition/b/_design/l/_rewrite/docs')
    assert.deepEqual(rows.map(({ id }: { readonly id: string }) => id), ['b:1'])
  })

  it('leads to descriptions of design documents, and to indexes of queries', async () => {
    assert.equal((await node.get('/p/_partition/a/_design/l/_info')).json.name, 'l')
    const { json: { id, name } } = await node.post('/p/_partition/a/_index', { index: { fields: ['n'] } })
    assert.equal((await node.get('/p/_partition/a/_index')).json.total_rows, 2)
    assert.equal((await node.request('DELETE', `/p/_partition/a/_index/${id}/json/${name}`)).status, 200)
    assert.equal((await node.get('/p/_index')).json.total_rows, 1)
  })

  it('has the errors and the methods of the path without the partition', async () => {
    const refusal = async (path: string, method = 'GET'): Promise<string> => {
      const { status, json } = await node.request(method, path)
      return `${status} ${json.error}: ${json.reason}`
    }
    const list = '_design/l/_list/l/m'
    assert.equal(await refusal(`/plain/_partition/a/${list}`), '400 bad_request: database is not partitioned')
    assert.equal(await refusal(`/p/_partition/_a/${list}`),
      '400 illegal_partition: Partition must not start with an underscore')
    assert.equal(await refusal(`/p/_partition/a/${list}?partition=b`),
      '400 bad_request: Conflicting value for `partition` in query string')
    assert.equal(await refusal(`/p/_partition/a/${list}`, 'PUT'), '405 method_not_allowed: Only GET,POST,HEAD allowed')
    assert.equal(await refusal('/p/_partition/a/_design/l/_list/l'), '404 list_error: Invalid path.')
    for (const path of ['_design/l', '_design/l/file', '_design/l/_unknown', '_changes', '_all_docs/x', 'a:1']) {
      assert.equal(await refusal(`/p/_partition/a/${path}`), '404 not_found: missing', path)
    }
  })
})
