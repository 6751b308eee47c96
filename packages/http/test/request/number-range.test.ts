import assert from 'node:assert/strict'
import { MemoryNode } from '../memory-node.ts'
import { MemoryViews } from '../views/memory-views.ts'

let node: MemoryNode

describe('a number beyond the range of doubles', () => {
  before(async () => {
    node = new MemoryNode({ wrap: coordinator => Object.assign(coordinator, new MemoryViews(coordinator)) })
    await node.put('/db')
    await node.put('/db/_design/d', {
      views: { v: { map: 'doc => emit(doc._id)' } }, lists: { l: '() => "listed"' }, shows: { s: '() => "shown"' },
      rewrites: [{ from: 'v', to: '_view/v' }],
    })
  })
  after(() => node.stop())

  for (const path of ['_design/d/_view/v', '_design/d/_list/l/v', '_design/d/_rewrite/v', '_all_docs', '_local_docs']) {
    it(`is no key in the query of ${path}`, async () => {
      for (const query of ['key=1e400', 'startkey=1e400', 'endkey=[-1e999]', 'keys=[1e400,1]']) {
        const { status, json } = await node.get(`/db/${path}?${query}`)
        assert.deepEqual([status, json.error, json.reason], [400, 'bad_request', 'invalid UTF-8 JSON'], query)
      }
    })
  }

  for (const [path, body] of [
    ['_design/d/_view/v', '{"key":1e400}'], ['_design/d/_view/v', '{"keys":[-1e999,2]}'],
    ['_design/d/_view/v/queries', '{"queries":[{"startkey":{"a":1e400}}]}'], ['_design/d/_list/l/v', '{"key":1e400}'],
    ['_all_docs', '{"keys":[1e400]}'], ['_find', '{"selector":{"n":{"$gt":1e400}}}'],
    ['_explain', '{"selector":{"n":1e400}}'], ['_changes?filter=_selector', '{"selector":{"n":-1e400}}'],
    ['_index', '{"index":{"fields":["n"],"partial_filter_selector":{"n":1e400}}}'],
  ] as const) {
    it(`is refused in ${body} to ${path}`, async () => {
      const { status, json } = await node.post(`/db/${path}`, body, { 'content-type': 'application/json' })
      assert.deepEqual([status, json.error, json.reason], [400, 'bad_request', 'invalid UTF-8 JSON'])
    })
  }

  it('is refused in the query of a show function and of a feed', async () => {
    for (const path of ['_design/d/_show/s?key=1e400', '_changes?filter=_doc_ids&doc_ids=["a",1e400]']) {
      assert.equal((await node.get(`/db/${path}`)).json.reason, 'invalid UTF-8 JSON')
    }
  })

  it('is kept in a document when it is an integer', async () => {
    const long = `{"n":${'9'.repeat(400)}}`
    const typed = { 'content-type': 'application/json' }
    assert.equal((await node.request('PUT', '/db/long', long, typed)).status, 201)
    assert.ok((await node.get('/db/long')).text.includes(long.slice(1, -1)))
    const { json } = await node.post('/db/_changes?filter=_selector', { selector: { n: { $gt: 1 } } })
    assert.deepEqual(json.results.map(({ id }: { readonly id: string }) => id), ['long'])
  })
})
