import { expect } from 'chai'
import { MemoryNode } from '../memory-node.ts'

const conflicts = 60
const bodyBytes = 100_000

describe('open_revs of a document with many large conflicts', () => {
  let node: MemoryNode
  /** Numbers of revisions that were opened together. */
  let opened: number[]
  /** Ids of documents that were read one by one with a quorum. */
  let read: string[]
  beforeEach(async () => {
    opened = []
    read = []
    node = new MemoryNode({ wrap: coordinator => {
      const { openDocument, openRevisions } = coordinator
      coordinator.openDocument = (db, id, options, context) => {
        read.push(id)
        return openDocument(db, id, options, context)
      }
      coordinator.openRevisions = (db, id, asked, context) => {
        opened.push(asked.revisions === 'leaves' ? Infinity : asked.revisions.length)
        return openRevisions(db, id, asked, context)
      }
      return coordinator
    } })
    await node.put('/db?q=1')
    const docs = Array.from({ length: conflicts }, (_, index) => (
      { _id: 'doc', _rev: `1-${String(index).padStart(32, '0')}`, text: 'x'.repeat(bodyBytes) }))
    expect((await node.post('/db/_bulk_docs', { docs, new_edits: false })).status).to.equal(201)
  })
  afterEach(() => node.stop())

  it('opens few of them at a time, and returns all, the winner first', async () => {
    const { json } = await node.get('/db/doc?open_revs=all', { accept: 'application/json' })
    const revisions = json.map((each: { ok: { _rev: string } }) => each.ok._rev)
    expect(revisions).to.have.length(conflicts)
    expect(revisions[0]).to.equal(`1-${String(conflicts - 1).padStart(32, '0')}`)
    expect(new Set(revisions).size).to.equal(conflicts)
    expect(Math.max(...opened)).to.be.below(12)
  })

  it('opens named ones in the same way, and tells which are missing', async () => {
    const named = [...Array.from({ length: conflicts }, (_, index) => `1-${String(index).padStart(32, '0')}`), '9-ab']
    const path = `/db/doc?open_revs=${encodeURIComponent(JSON.stringify(named))}`
    const { json } = await node.get(path, { accept: 'application/json' })
    expect(json.map((each: { ok?: { _rev: string }; missing?: string }) => each.ok?._rev ?? each.missing))
      .to.deep.equal(named)
    expect(Math.max(...opened)).to.be.below(12)
  })

  it('opens few of them at a time for _bulk_get, too', async () => {
    await node.put('/db/small', {})
    const { json } = await node.post('/db/_bulk_get', { docs: [{ id: 'doc' }, { id: 'none' }, { id: 'small' }] })
    const [large, none, small] = json.results
    expect(large.docs.map((each: { ok: { _rev: string } }) => each.ok._rev)).to.have.length(conflicts)
    expect(none.docs[0].error.reason).to.equal('missing')
    expect(small.docs).to.have.length(1)
    expect(opened).to.have.length.above(4)
    expect(Math.max(...opened)).to.be.below(12)
    expect(read, 'others are read together').to.deep.equal(['doc'])
  })

  it('answers 404 for all revisions of an absent document', async () => {
    expect((await node.get('/db/none?open_revs=all')).status).to.equal(404)
  })
})
