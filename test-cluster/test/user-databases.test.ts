import { expect } from 'chai'
import { eventually, TestCluster } from '../src/test-cluster.ts'

const settings = { 'couch_peruser/enable': 'true', 'couch_peruser/delete_dbs': 'true', 'chttpd_auth/iterations': '10' }

describe('databases of users on three nodes', () => {
  let cluster: TestCluster
  before(async () => { cluster = await TestCluster.start({ nodes: 3, settings }) })
  after(async function () { await cluster.close(this.currentTest?.state === 'failed') })

  const databaseOf = (user: string): string => `/userdb-${Buffer.from(user).toString('hex')}`
  const documentOf = (user: string): string => `/_users/org.couchdb.user:${user}`

  const create = async (number: number, user: string): Promise<void> => {
    const json = { name: user, type: 'user', roles: [], password: 'x' }
    expect((await cluster.node(number).http.send('PUT', documentOf(user), { json })).status).to.equal(201)
  }

  /** Resolves when the user can write to the database of the user through the node. */
  const canWrite = (number: number, user: string): Promise<void> => (
    eventually(`${user} to write through node ${number}`, 30_000, async () => {
      const answer = await cluster.node(number).http.send('POST', databaseOf(user), { json: {}, auth: `${user}:x` })
      expect(answer.status).to.equal(201)
    }))

  it('are created, are closed to others, and are deleted with their users', async () => {
    for (const user of ['ann', 'bob']) await create(1, user)
    for (const user of ['ann', 'bob']) for (const number of [1, 2, 3]) await canWrite(number, user)
    const refused = await cluster.node(2).http.send('GET', databaseOf('ann'), { auth: 'bob:x' })
    expect(refused.status).to.equal(403)
    const { body } = await cluster.node(2).http.send('GET', documentOf('ann'))
    await cluster.node(2).http.send('DELETE', `${documentOf('ann')}?rev=${body._rev}`)
    for (const number of [1, 2, 3]) {
      await eventually(`no database of ann on node ${number}`, 30_000, async () => {
        expect((await cluster.node(number).http.send('GET', databaseOf('ann'))).status).to.equal(404)
      })
    }
    expect((await cluster.node(3).http.send('GET', databaseOf('bob'))).status).to.equal(200)
  })

  it('are created when the node that took the write is killed directly after its answer, whichever it is', async () => {
    for (const number of [1, 2, 3]) {
      const user = `killed${number}`
      await create(number, user)
      await cluster.node(number).crash()
      for (const other of [1, 2, 3].filter(each => each !== number)) await canWrite(other, user)
      await cluster.node(number).start()
      await canWrite(number, user)
    }
  })
})
