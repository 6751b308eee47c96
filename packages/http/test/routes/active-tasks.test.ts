import { expect } from 'chai'
import { indexId, type JsonObject, viewDefinitions } from '@sectional/core'
import { MemoryNode } from '../memory-node.ts'

describe('active tasks', () => {
  let node: MemoryNode
  beforeEach(() => { node = new MemoryNode({ nodes: ['node1@127.0.0.1', 'node2@127.0.0.1'] }) })
  afterEach(() => node.stop())

  it('come from every node that answers', async () => {
    expect((await node.get('/_active_tasks')).json).to.deep.equal([
      { node: 'node1@127.0.0.1', type: 'view_compaction' }, { node: 'node2@127.0.0.1', type: 'indexer' },
    ])
    node.control.ask = () => Promise.reject(new Error('link broke'))
    expect((await node.get('/_active_tasks')).json).to.have.length(1)
  })

  describe('that build an index', () => {
    const views = { v: { map: 'function (doc) { emit(doc.n) }' } }
    const task: JsonObject = {
      node: 'node2@127.0.0.1', type: 'indexer', database: 'shards/00000000-7fffffff/a/b',
      index: indexId(viewDefinitions({ views }, { partitioned: false }).get('v')!),
    }
    const unneeded: JsonObject = { ...task, index: 'f'.repeat(64) }
    let built: readonly JsonObject[]
    beforeEach(async () => {
      built = [task, unneeded]
      node.control.ask = async () => built
      await node.put('/a%2Fb')
      for (const name of ['z', 'y']) {
        expect((await node.put(`/a%2Fb/_design/${name}`, { views })).status).to.equal(201)
      }
    })
    const shown = async (): Promise<readonly JsonObject[]> => (await node.get('/_active_tasks')).json.slice(1)

    it('name the first design document that needs the index', async () => {
      expect(await shown()).to.deep.equal([{ ...task, design_document: '_design/y' }, unneeded])
    })

    it('name none in a database that was deleted meanwhile', async () => {
      built = [{ ...task, database: 'shards/00000000-7fffffff/gone' }]
      expect(await shown()).to.deep.equal(built)
    })

    it('name none when the design documents cannot be read', async () => {
      node.coordinator.designDocuments = () => Promise.reject(new Error('no replica answers'))
      expect(await shown()).to.deep.equal(built)
    })

    it('wait a second for the design documents at most', async () => {
      node.coordinator.designDocuments = () => new Promise(() => {})
      const answer = shown()
      let isAnswered = false
      void answer.then(() => { isAnswered = true })
      await node.clock.advance(999)
      expect(isAnswered).to.equal(false)
      await node.clock.advance(1)
      expect(await answer).to.deep.equal(built)
    })
  })
})
