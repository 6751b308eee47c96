import { expect } from 'chai'
import { basic, MemoryNode } from '../memory-node.ts'

describe('the document of the rules of users is shown', () => {
  let node: MemoryNode
  beforeEach(() => {
    node = new MemoryNode()
    node.configuration.put('chttpd_auth', 'iterations', '2')
  })
  afterEach(() => node.stop())

  const register = async (): Promise<void> => {
    const ann = { name: 'ann', type: 'user', roles: [], password: 'x' }
    expect((await node.put('/_users/org.couchdb.user:ann', ann)).status).to.equal(201)
  }

  it('to administrators, with a tag', async () => {
    await register()
    const { status, json, headers } = await node.get('/_users/_design/_auth')
    expect([status, json._id, headers['etag']]).to.deep.equal([200, '_design/_auth', `"${json._rev}"`])
    expect((await node.get('/_users/_design/_auth', { 'if-none-match': `"${json._rev}"` })).status).to.equal(304)
    expect((await node.get(`/_users/_design/_auth?rev=${json._rev}`)).json).to.deep.equal(json)
    expect((await node.get('/_users/_design/_auth?rev=1-ab')).status).to.equal(404)
    expect((await node.get('/_users/_design/other')).status).to.equal(404)
    expect((await node.get('/_users/_design/_auth', { authorization: basic('ann', 'x') })).status).to.equal(403)
  })

  it('until an administrator stores a document there', async () => {
    await register()
    const stored = await node.put('/_users/_design/_auth', { language: 'javascript', mine: true })
    expect((await node.get('/_users/_design/_auth')).json.mine).to.equal(true)
    expect((await node.delete(`/_users/_design/_auth?rev=${stored.json.rev}`)).status).to.equal(200)
    expect((await node.get('/_users/_design/_auth')).json.reason).to.equal('deleted')
  })
})
