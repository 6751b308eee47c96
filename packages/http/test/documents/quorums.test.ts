import { expect } from 'chai'
import { MemoryNode } from '../memory-node.ts'

const nodes = ['node1@127.0.0.1', 'node2@127.0.0.1', 'node3@127.0.0.1']

describe('quorums over HTTP', () => {
  let node: MemoryNode
  beforeEach(async () => {
    node = new MemoryNode({ nodes })
    await node.put('/db?q=1&n=3')
  })
  afterEach(() => node.stop())

  it('answers 202 with ETag and Location to a w that can never be met', async () => {
    const accepted = await node.put('/db/doc?w=4', {})
    expect(accepted.status).to.equal(202)
    expect(accepted.headers).to.include.keys('etag', 'location')
    expect((await node.put('/db/other?w=3', {})).status).to.equal(201)
    expect((await node.put('/db/third?w=nonsense', {})).status).to.equal(201)
  })

  it('marks accepted rows of _bulk_docs', async () => {
    const bulk = await node.post('/db/_bulk_docs', { docs: [{ _id: 'a' }], w: 4 })
    expect([bulk.status, bulk.json[0].accepted]).to.deep.equal([202, true])
    const status = async (body: object): Promise<number> => (await node.post('/db/_bulk_docs?w=4', body)).status
    expect(await status({ docs: [{ _id: 'b' }], w: 3 }), 'the body counts').to.equal(201)
    expect(await status({ docs: [{ _id: 'c' }] })).to.equal(202)
  })

  it('reports n, w and r as they stand', async () => {
    expect((await node.get('/db')).json.cluster).to.deep.equal({ q: 1, n: 3, w: 2, r: 2 })
    expect((await node.get('/db/_shards')).json).to.deep.equal({ shards: { '00000000-ffffffff': nodes } })
  })
})
