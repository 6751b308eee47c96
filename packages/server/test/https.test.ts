import { expect } from 'chai'
import type { MemoryRuntime } from '@sectional/runtime'
import { MemoryCluster } from './memory-cluster.ts'

interface Answer { readonly status: number; readonly location: string; readonly cookie: string }

describe('a node with HTTPS', () => {
  let cluster: MemoryCluster
  let runtime: MemoryRuntime
  let stop: () => Promise<void>
  beforeEach(async () => {
    cluster = new MemoryCluster(1, {}, ['[chttpd]', 'bind_address = host1', '[ssl]', 'enable = true'])
    const life = await cluster.make(1)
    runtime = life.runtime
    stop = () => cluster.finish(life.node.stop())
    await cluster.finish(life.node.start())
    expect(life.node.http).to.include({ host: 'host1', port: 5984 })
    expect(life.node.https).to.include({ host: 'host1', port: 6984 })
    await cluster.until('the node is up', async () => (await send('GET', '/_up', 5984)).status === 200)
  })

  async function send(
    method: string, target: string, port: number, headers: Record<string, string> = {}, body?: string,
  ): Promise<Answer> {
    const authorization = `Basic ${Buffer.from('admin:password').toString('base64')}`
    const answer = await cluster.finish(runtime.http.inject({
      method, target, headers: { host: 'couch', authorization, 'content-type': 'application/json', ...headers },
      ...body !== undefined && { body },
    }, port))
    return {
      status: answer.status, location: String(answer.headers['location']), cookie: String(answer.headers['set-cookie']),
    }
  }

  it('answers on both ports, names the scheme that the client used, and secures cookies of HTTPS only', async () => {
    expect(await send('PUT', '/plain', 5984)).to.include({ status: 201, location: 'http://couch/plain' })
    expect(await send('PUT', '/safe', 6984)).to.include({ status: 201, location: 'https://couch/safe' })
    const login = JSON.stringify({ name: 'admin', password: 'password' })
    const secured = await send('POST', '/_session?next=/_utils', 6984, {}, login)
    expect([secured.status, secured.location]).to.deep.equal([302, 'https://couch/_utils'])
    expect(secured.cookie).to.match(/; Secure;/)
    const plain = await send('POST', '/_session', 5984, { 'x-forwarded-proto': 'https' }, login)
    expect(plain.cookie).to.match(/^AuthSession=/).and.not.match(/Secure/)
    await stop()
    for (const port of [5984, 6984]) {
      const failure: unknown = await cluster.finish(send('GET', '/', port).catch((error: Error) => error.message))
      expect(failure).to.equal('nobody listens')
    }
    expect(cluster.clock.pendingTimers).to.equal(0)
  })
})
