import { expect } from 'chai'
import { MemoryCluster, type MemoryAnswer } from './memory-cluster.ts'

for (const nodes of [1, 3]) {
  describe(`a query of a user in the database of users, on ${nodes} ${nodes === 1 ? 'node' : 'nodes'}`, () => {
    let cluster: MemoryCluster

    before(async () => {
      cluster = new MemoryCluster(nodes, {}, [
        '[couchdb]', 'users_db_security_editable = true', '[chttpd_auth]', 'iterations = 1',
      ])
      for (let number = 1; number <= nodes; number++) await cluster.start(number)
      await cluster.ready()
      for (const name of ['ann', 'bob', 'cy']) {
        const user = { type: 'user', name, roles: [], password: 'pw' }
        expect((await send('PUT', `org.couchdb.user:${name}`, user)).status).to.equal(201)
      }
      expect((await send('PUT', '_security', {})).status).to.equal(200)
      expect((await send('POST', '_index', { index: { fields: ['name'] }, ddoc: 'd', name: 'n' })).status).to.equal(200)
    })
    after(() => cluster.close())

    const send = (method: string, path: string, json: unknown, login?: string): Promise<MemoryAnswer> =>
      cluster.send(nodes, method, `/_users/${path}`, json, login)
    const find = async (body: object, login = 'bob:pw'): Promise<any> => {
      const answer = await send('POST', '_find', body, login)
      expect(answer.status, JSON.stringify(answer.body)).to.equal(200)
      return answer.body
    }
    const names = async (selector: object, more: object = {}, login?: string): Promise<unknown> =>
      (await find({ selector, ...more }, login)).docs.map(({ name }: { name: string }) => name)

    it('finds the own document, and no other one', async () => {
      for (const selector of [
        {}, { name: 'bob' }, { name: { $gt: null } }, { $or: [{ name: 'ann' }, { name: 'bob' }] },
        { $not: { name: 'x' } },
      ]) {
        expect(await names(selector), JSON.stringify(selector)).to.deep.equal(['bob'])
        expect(await names(selector, { use_index: 'd', sort: ['name'], conflicts: true })).to.deep.equal(['bob'])
        expect(await find({ selector, count: true }), JSON.stringify(selector)).to.deep.include({ count: 1 })
      }
      const others = [
        { name: 'ann' }, { _id: 'org.couchdb.user:ann' }, { _id: { $gt: 'org.couchdb.user:bob' } }, { $and: [] },
        { $or: [] }, { $or: [{ name: 'ann' }, { name: 'cy' }] },
      ]
      for (const selector of others) {
        expect(await names(selector), JSON.stringify(selector)).to.deep.equal([])
        expect(await find({ selector, count: true })).to.deep.include({ count: 0 })
      }
      expect(await names({}, { skip: 1 })).to.deep.equal([])
    })

    it('does not show by its statistics and bookmarks how many others there are', async () => {
      const first = await find({ selector: { name: { $gt: null } }, fields: ['name'], execution_stats: true, limit: 1 })
      expect(first.docs).to.deep.equal([{ name: 'bob' }])
      expect(first.execution_stats).to.deep.include({ total_keys_examined: 1, total_docs_examined: 1 })
      expect(await names({ name: { $gt: null } }, { bookmark: first.bookmark })).to.deep.equal([])
    })

    it('is for those who are logged in, and finds all documents for administrators', async () => {
      expect(await send('POST', '_find', { selector: {} }, '')).to.deep.equal({
        status: 401, body: { error: 'unauthorized', reason: 'You are not a db or server admin.' },
      })
      expect(await names({ type: 'user' }, {}, 'admin:password')).to.deep.equal(['ann', 'bob', 'cy'])
    })
  })
}
