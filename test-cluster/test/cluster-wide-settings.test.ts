import { expect } from 'chai'
import type { Answer } from '../src/http-client.ts'
import { eventually, TestCluster } from '../src/test-cluster.ts'

const numbers = [1, 2, 3]

describe('settings of all three nodes', () => {
  let cluster: TestCluster
  before(async () => {
    cluster = await TestCluster.start({ nodes: 3, settings: { 'chttpd_auth/iterations': '10' } })
  })
  after(async function () { await cluster.close(this.currentTest?.state === 'failed') })

  const configure = (number: number, method: string, path: string, json?: unknown): Promise<Answer> =>
    cluster.node(number).http.send(method, `/_node/_local/_config/${path}`, { json })
  const url = (number: number, path: string): string => `http://127.0.0.1:${cluster.node(number).http.port}${path}`

  /** Logs in through a node, and returns the cookie. */
  const login = async (number: number): Promise<string> => {
    const body = JSON.stringify({ name: 'anna', password: 'first' })
    const answer = await fetch(url(number, '/_session'), {
      method: 'POST', body, headers: { 'content-type': 'application/json' },
    })
    expect(answer.status).to.equal(200)
    return answer.headers.get('set-cookie')!.split(';', 1)[0]!
  }
  /** Returns the name that each node finds for the cookie. */
  const namesOf = (cookie: string): Promise<unknown[]> => Promise.all(numbers.map(async number => {
    const answer = await fetch(url(number, '/_session'), { headers: { cookie, accept: 'application/json' } })
    return (await answer.json() as { userCtx: { name: unknown } }).userCtx.name
  }))
  const statuses = (auth: string): Promise<number[]> => Promise.all(numbers.map(async number =>
    (await cluster.node(number).http.send('GET', '/_all_dbs', { auth })).status))

  it('let an administrator who was created on one node log in on all, and nowhere once removed', async () => {
    expect((await configure(1, 'PUT', 'admins/anna', 'first')).status).to.equal(200)
    expect(await statuses('anna:first')).to.deep.equal([200, 200, 200])
    expect(await namesOf(await login(2))).to.deep.equal(['anna', 'anna', 'anna'])
    expect((await configure(1, 'PUT', 'admins/bert', 'second')).status).to.equal(200)
    expect((await configure(3, 'DELETE', 'admins/bert')).status).to.equal(200)
    expect(await statuses('bert:second')).to.deep.equal([401, 401, 401])
    // The administrator in the files of the nodes.
    expect((await configure(2, 'DELETE', 'admins/admin')).status).to.equal(403)
  })

  it('let sessions continue on all nodes while their secret is changed', async () => {
    const cookies = await Promise.all(numbers.map(login))
    let refused = 0
    let checks = 0
    const ended = new AbortController()
    const using = (async () => {
      while (!ended.signal.aborted) {
        for (const cookie of cookies) {
          checks++
          if ((await namesOf(cookie)).some(name => name !== 'anna')) refused++
        }
      }
    })()
    for (const [index, number] of [1, 2, 3].entries()) {
      expect((await configure(number, 'PUT', 'chttpd_auth/secret', `the secret number ${index}`)).status).to.equal(200)
      cookies.push(await login(number))
    }
    ended.abort()
    await using
    expect([refused, checks > 3]).to.deep.equal([0, true])
    expect(await namesOf(cookies.at(-1)!)).to.deep.equal(['anna', 'anna', 'anna'])
  })

  it('reach a node that was away, which accepts sessions of the time before', async () => {
    const before = await login(1)
    await cluster.node(3).stop()
    expect((await configure(1, 'PUT', 'chttpd_auth/secret', 'while one was away')).status).to.equal(200)
    expect((await configure(1, 'PUT', 'admins/carl', 'third')).status).to.equal(200)
    cluster.node(3).start()
    await cluster.ready()
    await eventually('node 3 to have the settings', 5_000, async () => {
      expect(await statuses('carl:third')).to.deep.equal([200, 200, 200])
    })
    expect(await namesOf(before)).to.deep.equal(['anna', 'anna', 'anna'])
    expect(await namesOf(await login(3))).to.deep.equal(['anna', 'anna', 'anna'])
  })

  it('include handlers and keys of tokens', async () => {
    // HS256 with the key "a secret of thirty-two bytes here"; the claims are {"sub":"tom","exp":4102444800}.
    const key = Buffer.from('a secret of thirty-two bytes here').toString('base64')
    await configure(2, 'PUT', 'jwt_keys/hmac:_default', key)
    await configure(3, 'PUT', 'chttpd/authentication_handlers', 'cookie, jwt, default')
    for (const number of numbers) {
      const answer = await fetch(url(number, '/_up'), { headers: { authorization: 'Bearer not.a.token' } })
      expect(answer.status, `node ${number}`).to.equal(400)
      expect((await configure(number, 'GET', 'jwt_keys')).body).to.deep.equal({ 'hmac:_default': '****' })
    }
    await configure(1, 'DELETE', 'chttpd/authentication_handlers')
    await configure(1, 'DELETE', 'jwt_keys/hmac:_default')
    for (const number of numbers) {
      const answer = await fetch(url(number, '/_up'), { headers: { authorization: 'Bearer not.a.token' } })
      expect(answer.status, `node ${number}`).to.equal(200)
      expect((await configure(number, 'GET', 'jwt_keys')).body).to.deep.equal({})
    }
  })

  it('let clients be anybody on no node when a proxy needs the secret', async () => {
    await configure(1, 'PUT', 'chttpd_auth/proxy_use_secret', 'true')
    await configure(2, 'PUT', 'chttpd/authentication_handlers', 'cookie, proxy, default')
    for (const number of numbers) {
      const headers = { 'x-auth-service-username': 'eve', 'x-auth-service-roles': '_admin' }
      expect((await fetch(url(number, '/_all_dbs'), { headers })).status, `node ${number}`).to.equal(401)
    }
    await configure(3, 'DELETE', 'chttpd/authentication_handlers')
    await configure(3, 'DELETE', 'chttpd_auth/proxy_use_secret')
  })

  it('are not changed without a majority, while files and sessions still work', async () => {
    const cookie = await login(1)
    await cluster.node(2).stop()
    await cluster.node(3).stop()
    expect((await configure(1, 'PUT', 'admins/dora', 'fourth')).status).to.equal(503)
    const session = await fetch(url(1, '/_session'), { headers: { cookie, accept: 'application/json' } })
    expect((await session.json() as { userCtx: { name: unknown } }).userCtx.name).to.equal('anna')
    cluster.node(2).start()
    cluster.node(3).start()
    await cluster.ready()
  })
})
