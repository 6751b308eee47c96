import { expect } from 'chai'
import { eventually, TestCluster } from '../src/test-cluster.ts'

const path = '/_users/org.couchdb.user:ann'

describe('users on three nodes', () => {
  let cluster: TestCluster
  before(async () => {
    cluster = await TestCluster.start({ nodes: 3, settings: { 'chttpd_auth/iterations': '10' } })
  })
  after(async function () { await cluster.close(this.currentTest?.state === 'failed') })

  const statusOf = async (number: number, auth: string): Promise<number> => (
    (await cluster.node(number).http.send('GET', '/_session', { auth })).status)

  /** Resolves when the node answers so; fails after five seconds. */
  const becomes = (number: number, auth: string, status: number): Promise<void> => (
    eventually(`${auth} gets ${status} from node ${number}`, 5_000, async () => {
      expect(await statusOf(number, auth)).to.equal(status)
    }))

  it('are written through all nodes together before their database exists', async () => {
    const answers = await Promise.all([1, 2, 3].map(number => (
      cluster.node(number).http.send('PUT', `/_users/org.couchdb.user:u${number}`, {
        json: { name: `u${number}`, type: 'user', roles: [], password: 'x' },
      }))))
    expect(answers.map(({ status }) => status)).to.deep.equal([201, 201, 201])
  })

  it('log in everywhere, and no more within five seconds after the password was changed on one node', async () => {
    const user = { name: 'ann', type: 'user', roles: [], password: 'first' }
    const { status, body } = await cluster.node(1).http.send('PUT', path, { json: user })
    expect([status, body.ok]).to.deep.equal([201, true])
    expect(await statusOf(1, 'ann:first')).to.equal(200)
    for (const number of [2, 3]) await becomes(number, 'ann:first', 200)
    const changed = await cluster.node(1).http.send('PUT', `${path}?rev=${body.rev}`, {
      json: { ...user, password: 'second' },
    })
    expect(changed.status).to.equal(201)
    expect(await statusOf(1, 'ann:first')).to.equal(401)
    expect(await statusOf(1, 'ann:second')).to.equal(200)
    for (const number of [2, 3]) {
      await becomes(number, 'ann:first', 401)
      await becomes(number, 'ann:second', 200)
    }
  })

  it('log in with a new password at once on every node, and are not locked out by this', async () => {
    const id = '/_users/org.couchdb.user:max'
    const user = { name: 'max', type: 'user', roles: [], password: 'password 0' }
    for (const number of [1, 2, 3]) expect(await statusOf(number, 'max:password 0')).to.equal(401)
    let { status, body } = await cluster.node(1).http.send('PUT', id, { json: user })
    expect(status).to.equal(201)
    for (let changes = 1; changes <= 6; changes++) {
      for (const number of [1, 2, 3]) expect(await statusOf(number, `max:password ${changes - 1}`)).to.equal(200)
      ;({ status, body } = await cluster.node(1).http.send('PUT', `${id}?rev=${body.rev}`, {
        json: { ...user, password: `password ${changes}` },
      }))
      expect(status).to.equal(201)
      // A name is read again once in half a second at most.
      await new Promise(resolve => { setTimeout(resolve, 500) })
    }
  })
})
