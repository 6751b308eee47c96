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

  it('let clients that are not logged in only create documents of users', async () => {
    const { rev } = (await node.put(`/x%2F_users/${idOf('ann')}`, { n: 1 })).json
    const refused = async (path: string, body: object): Promise<unknown[]> => (
      outcome(await node.put(`/x%2F_users/${path}`, body, nobody)))
    for (const change of [{ _rev: rev }, { _rev: rev, password: 'stolen' }]) {
      expect(await refused(idOf('ann'), change)).to.deep.equal([403, 'You may only update your own user document.'])
    }
    for (const id of ['other', idOf('')]) {
      expect(await refused(id, { n: 2 })).to.deep.equal([403, 'Doc ID must be of the form org.couchdb.user:name'])
    }
    expect(await refused(idOf('ann'), { n: 2 })).to.deep.equal([409, 'Document update conflict.'])
    const deletion = { _id: idOf('ann'), _rev: rev, _deleted: true }
    const bulk = await node.post('/x%2F_users/_bulk_docs', { docs: [deletion, { _id: idOf('eve') }] }, nobody)
    expect(bulk.json[0]).to.deep.equal({
      id: idOf('ann'), error: 'forbidden', reason: 'Only admins may delete other user docs.',
    })
    expect(bulk.json[1]).to.include({ ok: true, id: idOf('eve') })
    expect((await node.delete(`/x%2F_users/${idOf('ann')}?rev=${rev}`, nobody)).status).to.equal(404)
    const purged = await node.post('/x%2F_users/_purge', { [idOf('ann')]: [rev] }, nobody)
    expect(outcome(purged)).to.deep.equal([401, 'You are not a server admin.'])
    expect((await node.get(`/x%2F_users/${idOf('ann')}`)).json).to.include({ _rev: rev, n: 1 })
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
