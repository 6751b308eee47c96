import { createHmac } from 'node:crypto'
import { expect } from 'chai'
import type { MemoryRuntime } from '@sectional/runtime'
import type { Node } from '../src/node.ts'
import { MemoryCluster } from './memory-cluster.ts'

describe('the secret of sessions on several nodes', () => {
  const timeoutMs = 600_000
  let cluster: MemoryCluster
  let lives: { readonly runtime: MemoryRuntime; readonly node: Node }[]

  async function start(): Promise<void> {
    lives = await Promise.all([1, 2].map(number => cluster.make(number)))
    await cluster.finish(Promise.all(lives.map(({ node }) => node.start())))
    for (const index of [0, 1]) {
      await cluster.until('the node is up', async () => (await send(index, 'GET', '/_up')).status === 200)
    }
  }
  beforeEach(() => {
    cluster = new MemoryCluster(2)
    return start()
  })
  const stop = async (): Promise<void> => { await cluster.finish(Promise.all(lives.map(({ node }) => node.stop()))) }
  afterEach(stop)

  async function send(
    index: number, method: string, target: string, json?: unknown, more: Readonly<Record<string, string>> = {},
  ): Promise<{ readonly status: number; readonly body: any; readonly cookie: string }> {
    const headers = { 'content-type': 'application/json', ...more }
    const body = json === undefined ? {} : { body: JSON.stringify(json) }
    const answer = await cluster.finish(lives[index]!.runtime.http.inject({ method, target, headers, ...body }))
    const text = Buffer.from(answer.body).toString()
    const cookie = /^AuthSession=[^;]*/.exec(String(answer.headers['set-cookie']))?.[0] ?? ''
    return { status: answer.status, body: JSON.parse(text), cookie }
  }
  const admin = { authorization: `Basic ${Buffer.from('admin:password').toString('base64')}` }
  const login = async (index: number): Promise<string> =>
    (await send(index, 'POST', '/_session', { name: 'admin', password: 'password' })).cookie
  const users = (cookie: string): Promise<readonly unknown[]> =>
    Promise.all([0, 1].map(async index => {
      const { body } = await send(index, 'GET', '/_session', undefined, { cookie })
      return body.userCtx.name
    }))
  const forge = (secret: string): string => {
    const message = `admin:${Math.floor(cluster.clock.now() / 1000).toString(16).toUpperCase()}`
    const signature = createHmac('sha256', `${secret}salt`).update(message).digest()
    return `AuthSession=${Buffer.concat([Buffer.from(`${message}:`), signature]).toString('base64url')}`
  }
  const both = ['admin', 'admin']
  const none = [null, null]

  it('is a new one when a configured one is removed, and no earlier one is valid after its time', async () => {
    const path = '/_node/_local/_config/chttpd_auth/secret'
    const secrets = ['the first configured secret', 'the second configured secret']
    const generated = await login(0)
    expect(await users(generated)).to.deep.equal(both)
    for (const secret of secrets) expect((await send(0, 'PUT', path, secret, admin)).status).to.equal(200)
    expect(await users(generated)).to.deep.equal(both)
    await cluster.clock.advance(timeoutMs)
    const configured = await login(0)
    expect(configured).to.equal(forge(secrets[1]!))
    expect((await send(1, 'DELETE', path, undefined, admin)).status).to.equal(200)
    expect(await users(configured), 'the secret that was removed').to.deep.equal(both)
    const next = await login(0)
    expect(await users(next)).to.deep.equal(both)
    expect([forge(secrets[0]!), forge(secrets[1]!)]).not.to.include(next)
    await stop()
    await start()
    expect(await users(next)).to.deep.equal(both)
    await cluster.clock.advance(timeoutMs)
    expect(await users(forge(secrets[0]!))).to.deep.equal(none)
    expect(await users(forge(secrets[1]!))).to.deep.equal(none)
    // Now the time of a cookie that was signed with the first secret of the cluster is not over.
    for (const node of cluster.names) {
      const answer = await send(0, 'PUT', `/_node/${node}/_config/chttpd_auth/timeout`, '100000', admin)
      expect(answer.status).to.equal(200)
    }
    expect([await users(generated), await users(next)]).to.deep.equal([none, both])
  })
})
