import { expect } from 'chai'
import { basic, MemoryNode, type Answer } from '../memory-node.ts'

const nobody = { authorization: '' }
const bob = { authorization: basic('bob', 'pw') }
const idOf = (name: string): string => `org.couchdb.user:${name}`
const outcome = ({ status, json }: Answer): unknown[] => [status, json.reason]

describe('databases with /_users at the end of their names', () => {
  let node: MemoryNode
  beforeEach(async () => {
    node = new MemoryNode()
    await node.put(`/_users/${idOf('bob')}`, { type: 'user', name: 'bob', roles: [], password: 'pw' })
    for (const name of ['x%2F_users', 'x_users']) {
      expect((await node.put(`/${name}`)).status).to.equal(201)
      expect((await node.put(`/${name}/_security`, {})).status).to.equal(200)
    }
  })
  afterEach(() => node.stop())

  it('keep no passwords, only their hashes', async () => {
    const write = (name: string): object => ({ _id: idOf(name), password: 'geheim', n: 1 })
    const answers = [
      await node.put(`/x%2F_users/${idOf('a')}`, { password: 'geheim', n: 1 }, nobody),
      await node.post('/x%2F_users', write('b'), nobody), await node.post('/x%2F_users', write('c')),
      await node.put(`/x%2F_users/${idOf('d')}?batch=ok`, write('d'), nobody),
      await node.post('/x%2F_users/_bulk_docs', { docs: [write('e'), write('f')] }),
      await node.post('/x%2F_users/_bulk_docs', { docs: [{ ...write('g'), _rev: '1-a' }], new_edits: false }),
    ]
    for (const answer of answers) expect(answer.status, answer.text).to.equal(201)
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) {
      const { json } = await node.get(`/x%2F_users/${idOf(name)}`)
      expect(json).to.include({ password_scheme: 'pbkdf2', n: 1 })
      expect(json).not.to.have.property('password')
    }
    await node.post('/x_users', write('a'))
    expect((await node.get(`/x_users/${idOf('a')}`)).json).to.include({ password: 'geheim' })
  })

  it('show each user the own document only, and lists to administrators', async () => {
    for (const name of ['ann', 'bob']) {
      await node.put(`/x%2F_users/${idOf(name)}`, { password: 'geheim' })
      await node.put(`/x_users/${idOf(name)}`, { password: 'geheim' })
    }
    expect((await node.get(`/x%2F_users/${idOf('bob')}`, bob)).status).to.equal(200)
    for (const headers of [bob, nobody]) {
      expect(outcome(await node.get(`/x%2F_users/${idOf('ann')}`, headers))).to.deep.equal([404, 'missing'])
      for (const path of ['_all_docs', '_changes', '_local/x', '_design/d/_view/v']) {
        const refused = await node.get(`/x%2F_users/${path}`, headers)
        expect(outcome(refused), path).to.deep.equal([401, 'You are not a server admin.'])
      }
      expect((await node.get('/x%2F_users/_design/d', headers)).status).to.equal(403)
      expect((await node.get('/x_users/_all_docs', headers)).status).to.equal(200)
    }
    expect(outcome(await node.put(`/x%2F_users/${idOf('eve')}`, {}, bob))).to.deep.equal([404, 'missing'])
    expect((await node.get('/x%2F_users/_all_docs')).json.total_rows).to.equal(2)
  })

  it('do not decide who can log in', async () => {
    node.audited.length = 0
    const members = { type: 'user', name: 'eve', roles: [], password: 'x' }
    expect((await node.put(`/x%2F_users/${idOf('eve')}`, members)).status).to.equal(201)
    expect((await node.get('/_session', { authorization: basic('eve', 'x') })).status).to.equal(401)
    await node.put(`/x%2F_users/${idOf('bob')}`, { ...members, name: 'bob' })
    expect((await node.get('/_session', bob)).json.userCtx.name).to.equal('bob')
    expect(node.audited.filter(({ event }) => event === 'user_changed')).to.deep.equal([])
  })
})
